"""The study of incidents without a tracker: streams, faults and how alarms are counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from undertow.incidents import Incident
from undertow.lab.store import ResultStore
from undertow.lab.studies import incidents as study
from undertow.lab.studies import kept_results
from undertow.lab.studies import planted as streams


@pytest.mark.parametrize("name", streams.STREAMS)
def test_streams_are_clean_and_mostly_observed(name):
    values, size = streams.STREAMS[name](40, 0, streams.OBSERVED)
    assert values.shape == (40, *streams.SHAPE)
    assert 0.8 < np.mean(~np.isnan(values)) < 0.97
    assert size > 0


def test_faults_are_where_they_are_said_to_be():
    values, size = streams.gaussian(streams.LENGTH, 0, 1.0)
    made, faults = streams.planted(values, size)
    names = [
        "spike",
        "router, row and column",
        "column",
        "block",
        "slice",
        "dead sensor",
        "silent sensor",
        "level",
        "scene",
    ]
    assert [one.name for one in faults] == names
    assert faults[-1].first + streams.APART < len(made)
    for one in faults[:5]:
        differs = made[one.first : one.last + 1] != values[one.first : one.last + 1]
        assert (differs == one.entries).all()
    assert (made[: streams.FIRST] == values[: streams.FIRST]).all()


def test_alarms_are_counted_by_the_intervals_they_meet():
    faulty = np.zeros(1440, bool)
    faulty[[100, 101, 102, 500]] = True
    fired = np.zeros(1450, bool)
    fired[[10 + 50, 10 + 102, 10 + 103, 10 + 900]] = True
    spans = ((95, 111), (5, 7), (710, 712))
    told = tuple(Incident(number, "entry", first, last, until=last) for number, (first, last) in enumerate(spans))
    found = study.Followed(told, fired)
    numbers = study.judged(found, faulty, first=10)
    assert numbers["incidents"] == {"found": 1, "faults": 2, "alarms": 2, "false a day": 1.0, "false since": [700]}
    assert numbers["three sigma"] == {
        "found": 1,
        "faults": 2,
        "alarms": 3,
        "false a day": 2.0,
        "false since": [50, 900],
    }


def test_tables_hold_what_was_counted():
    one = Incident(1, "entry", 300, 300, until=300, entries=((3, 4),), count=1)
    elsewhere = Incident(2, "entry", 300, 300, until=300, entries=((7, 7),), count=1)
    found = study.Followed((one,), np.zeros(576, bool), (one, elsewhere))
    values, size = streams.gaussian(streams.LENGTH, 0, 1.0)
    _, faults = streams.planted(values, size)
    records = [{"row": name, **study._false(found)} for name in streams.STREAMS]
    records += [{"row": "normal", **study._met(one, found)} for one in faults]
    records.append({"row": "normal", **study._discovered(found, faults)})
    false, met, discovered = study.tables(records)
    assert false.rows[0][2].startswith("0.50")
    assert met.rows[0] == ("spike", "1 of 1", "1.00", "1 of 1", "0")
    assert met.rows[1][1] == "0 of 1"
    assert discovered.rows == [("1 with faults", "1 of 9", "2", "1")]


def results(values):
    for t, x in enumerate(values):
        none, x = np.zeros(x.shape), np.nan_to_num(x)
        events = SimpleNamespace(slice_off=t == 7, changed=((3, 3), (1, 2)), dead=())
        yield SimpleNamespace(
            mean=x, std=none + 1, innovations=none, outlier_probability=none, outliers=none, events=events
        )


def test_results_that_were_kept_are_the_same_again(tmp_path):
    values = np.random.default_rng(0).normal(size=(9, 4, 5))
    path = tmp_path / "deep" / "one.npz"
    first = list(kept_results.kept(path, lambda: results(values)))
    again = list(kept_results.kept(path, lambda: pytest.fail("made twice")))
    assert [one.events.slice_off for one in again] == [t == 7 for t in range(9)]
    for one, two, x in zip(first, again, values, strict=True):
        assert (one.mean == two.mean).all()
        assert (two.mean == x.astype(np.float32)).all()
        assert list(zip(*two.events.changed, strict=True)) == [(3, 1), (3, 2)]
        assert len(two.events.dead[0]) == 0


def test_finished_streams_are_not_done_again(reporter, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(study, "_tracked", lambda values: done.append(len(values)) or results(values))
    store = ResultStore(tmp_path)
    first, records = study.incidents(["normal"], [5], 120, store, reporter)
    assert sorted(done) == [120, streams.LENGTH]
    assert [table.title for table in first] == [
        "False incidents a day on clean streams",
        "Planted faults, all streams",
        "At a false-discovery rate (fdr 10% asked)",
    ]
    again = study.incidents(["normal"], [5], 120, store, reporter)
    assert again == (first, records)
    assert len(done) == 2
