"""`ut.explain`: an entry of a recording in words and numbers."""

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from stubs import StubModel, StubStream

import undertow as ut
from undertow.incidents import Incident
from undertow.runs import run

xarray = pytest.importorskip("xarray")


def dataset(**more):
    """Entry (A, 1) is off in slices 2 and 4, with a gap between them, and in slice 6."""
    rng = np.random.default_rng(0)
    mean = np.full((8, 3, 2), 10.0)
    data = mean + rng.normal(size=mean.shape)
    data[[2, 4, 6], 0, 1], data[3, 0, 1] = [30, 34, -20], np.nan
    probability = np.zeros(mean.shape)
    probability[[2, 4, 6], 0, 1], probability[4, 2] = 0.9, 0.8
    dims = ("when", "src", "dst")
    found = {"mean": mean, "std": mean / 5, "data": data, "outlier_probability": probability}
    hours = np.datetime64("2026-03-01T22", "ns") + np.arange(8) * np.timedelta64(1, "h")
    variables = {name: (dims, array) for name, array in found.items()} | more
    return xarray.Dataset(variables, {"src": ["A", "B", "C"], "when": hours})


def test_the_worst_slice_is_explained_unless_one_is_named():
    why = ut.explain(dataset(), src="A", dst=1)
    assert why.entry == "src A, dst 1, when 2026-03-02T04:00"
    assert (why.position, why.value, why.expected, why.distance) == ((6, 0, 1), -20, 10, -15)
    assert why.flagged
    assert "15.0 standard deviations below it" in str(why)
    assert "The observations before and after it are not flagged." in why.reasons


@pytest.mark.parametrize(
    "when",
    [
        "2026-03-02 02:00",
        np.datetime64("2026-03-02T02"),
        datetime(2026, 3, 2, 2),
        datetime(2026, 3, 2, 3, tzinfo=timezone(timedelta(hours=1))),
        "2026-03-02T03:00+01:00",
        "2026-03-02 02:00:00Z",
    ],
)
def test_a_slice_by_its_time(when):
    why = ut.explain(dataset(), dst=1, src="A", when=when)
    assert why.value == 34
    assert "It is one of 2 in a row, from 2026-03-02T00:00 to 2026-03-02T02:00." in why.reasons
    assert "So are 2 more of its slice." in why.reasons


def incident(**facts):
    """That entry (B, 1) repeats one number since the fourth slice."""
    known = Incident(1, "dead", since=3, last=5, since_time="2026-03-02T01:00", where="src B, dst 1", count=1)
    details = json.dumps({**known.to_json(), "entries": [[1, 1]], **facts})
    return {"incident_details": (("incident",), np.array([details], object))}


def test_incidents_of_an_entry_are_part_of_its_explanation():
    given = dataset(**incident())
    given["when"].attrs["time_zone"] = "UTC"
    why = ut.explain(given, src="B", dst=1)
    assert why.entry == "src B, dst 1, when 2026-03-02T01:00 UTC"  # where it began: nothing else is wrong with it
    assert why.reasons[-1] == "Incident: src B, dst 1: repeats one number since 2026-03-02T01:00 UTC."
    assert "Incident" not in str(ut.explain(given, src="A", dst=0))
    assert "Incident" in str(ut.explain(given, src="B", dst=1, when="2026-03-02T05"))
    assert "Incident" not in str(ut.explain(given, src="B", dst=1, when="2026-03-02T00"))


def test_incidents_that_last_are_drawn():
    dates = pytest.importorskip("matplotlib.dates")
    for until, end in ((None, 7), (5, 5)):
        given = dataset(**incident(until=until))
        (span,) = ut.plot.entry(given, src="B", dst=1).patches
        begin, width = dates.num2date(span.get_x()), span.get_width()
        assert begin.strftime("%H:%M") == "01:00"
        assert round(24 * width) == end - 3
    assert not ut.plot.entry(given, src="A", dst=0).patches


def test_since_when_an_entry_is_silent():
    given = dataset()
    given["data"][2:5, 1, 0] = np.nan
    given["data"][6:, 2, 1] = np.nan
    why = ut.explain(given, src="B", dst=0, when="2026-03-02T01")
    assert "It was last observed at 2026-03-01T23:00, and next at 2026-03-02T03:00." in why.reasons
    why = ut.explain(given, src="C", dst=1, when="2026-03-02T05")
    assert "It was last observed at 2026-03-02T03:00, and never again." in why.reasons
    given["when"].attrs["time_zone"] = "UTC"
    why = ut.explain(given, src="C", dst=1, when="2026-03-02T05")
    assert "It was last observed at 2026-03-02T03:00 UTC, and never again." in why.reasons


def test_who_answered_and_what_was_wrong_with_the_slice():
    weights = ("when", "predictor"), np.tile([0.25, 0.75, 0.0], (8, 1))
    events = ("when",), np.array(["", "", "", "", "row off: src C", "", "", ""], object)
    given = dataset(weights=weights, events=events).assign_coords(predictor=["level", "season", "cp_0"])
    why = ut.explain(given, src="A", dst=1, when="2026-03-02T02")
    assert why.predictors.column("predictor") == ["season", "level"]
    assert "Of its slice: row off: src C." in why.reasons


def test_what_was_not_observed_is_explained_too():
    why = ut.explain(dataset(), src="A", dst=1, when="2026-03-02T01")
    assert (why.value, why.distance, why.flagged) == (None, None, False)
    assert why.reasons == (
        "Nothing was observed; it should be 10 ± 3.92 (95 %).",
        "It was last observed at 2026-03-02T00:00, and next at 2026-03-02T02:00.",
    )


def test_of_who_was_away_nothing_is_said():
    given = dataset()
    for name in ("data", "mean", "std"):
        given[name][6:, 2, 1] = np.nan
    why = ut.explain(given, src="C", dst=1, when="2026-03-02T05")
    assert why.reasons[0].startswith("Nothing was observed, and nothing is said")


def test_a_store_is_explained(tmp_path):
    run(StubStream(), StubModel(), store=tmp_path / "s.zarr")
    why = ut.explain(tmp_path / "s.zarr", site="b", column=2)
    assert why.entry.startswith("site b, column 2, ")
    assert why.value is not None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"src": "A"}, "entry must have a label for each of src, dst, got src"),
        ({"src": "Z", "dst": 1}, "src must be one of A, B, C, got 'Z'"),
        (
            {"src": "A", "dst": 1, "when": "2027"},
            "when must be that of a slice, from 2026-03-01T22:00 to 2026-03-02T05:00, got",
        ),
        ({"src": "A", "dst": 1, "when": "noon"}, "when must be that of a slice"),
    ],
)
def test_what_there_is_not_is_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        ut.explain(dataset(), **labels)


def test_other_sources_are_refused():
    with pytest.raises(ValueError, match="source must hold mean and std of every slice, got x"):
        ut.explain(xarray.Dataset({"x": ("t", [1.0])}), t=0)
