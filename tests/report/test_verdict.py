"""The verdict on a run: half of the entries flagged is not a calm page."""

from types import SimpleNamespace

import numpy as np
import pytest

from undertow.incidents.incident import Incident
from undertow.report.incidents import the_incidents
from undertow.report.verdict import verdict


def incident(until=None, **others):
    return Incident(1, "entry", since=80, last=90, until=until, where="src a", count=1, std=9.0, **others).to_json()


def stored(rate=0.01, observed=0.8, status="ok", slices=100, incidents=(), zone=None):
    columns = {"outlier_rate": rate, "observed": observed, "status": status}
    made = {name: np.broadcast_to(np.asarray(value), (slices,)).copy() for name, value in columns.items()}
    dataset = SimpleNamespace(attrs={} if zone is None else {"time_zone": zone})
    return SimpleNamespace(length=slices, per_slice=made.__getitem__, incidents=lambda: incidents, dataset=dataset)


def ending(value, other, last=30, slices=100):
    return np.where(np.arange(slices) >= slices - last, value, other)


@pytest.mark.parametrize(
    ("run", "word", "reason"),
    [
        (stored(), "healthy", "1.00% of the observations are flagged, 1.00% lately"),
        (stored(rate=ending(0.5, 0.01)), "broken", "50% of the observations in the last 10 slices are flagged"),
        (stored(rate=ending(0.0, 0.6)), "broken", "of all observations are flagged"),
        (stored(observed=ending(0.0, 0.9)), "broken", "Nothing was observed in the last 10 slices"),
        (stored(status=ending("SLICE_OFF", "ok")), "broken", "10 of the last 10 slices are wrong as a whole"),
        (stored(status=ending("ROW_OFF RANK_FULL", "ok", 1)), "changed", "had a row that was wrong"),
        (stored(rate=0.08), "changed", "8.0% of all observations are flagged"),
        (stored(status="RANK_FULL"), "healthy", ""),
        (stored(rate=0.9, slices=1), "broken", "90%"),
        (stored(incidents=[incident()] * 4), "changed", "since slice 80. 1 more incident goes on"),
        (stored(incidents=[incident(since_time="2026-03-01T08")], zone="Asia/Tokyo"), "changed", "2026-03-01T08 UTC."),
        (stored(incidents=[incident(until=90)]), "healthy", "1 incident is over."),
        (stored(incidents=[incident(false_alarm=True)]), "healthy", "1.00% of the observations"),
    ],
)
def test_the_verdict_follows_from_what_was_found(run, word, reason):
    found = verdict(run)
    assert found.word == word
    assert reason in " ".join(found.reasons)
    assert f'class="verdict {word}"' in found.html()


def test_the_first_slices_do_not_count():
    rate = np.where(np.arange(100) < 10, 1.0, 0.01)
    assert verdict(stored(rate=rate)).word == "healthy"


def test_incidents_are_a_table():
    run = stored(incidents=[incident(until=90), incident(since_time="2026-03-01T08:00")])
    run.dataset = SimpleNamespace(attrs={"false_alarms": "1/day"})
    page = the_incidents(run)
    for words in ("false ones accepted: 1/day", "src a", "slice 90", "2026-03-01 08:00", "goes on", "+9.0"):
        assert words in page
    assert the_incidents(stored()) == ""
