"""Whole recordings in one call: every kind of input gives the same Dataset."""

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from stubs import StubModel, StubTracker

import undertow as ut
from undertow.runs import RunError, cleaning
from undertow.sources.base import StreamError

X = np.random.default_rng(0).normal(10, 1, (8, 3, 4))
X[2, 1, 1] = np.nan


class Plain(StubTracker):
    """The stub with what `undertow.Result` has."""

    labels = None

    def update(self, x):
        result = super().update(x)
        result.plain = lambda name: getattr(result, name)
        result.innovations = np.where(np.isnan(x), np.nan, x - result.mean)
        return result


def array():
    return xr.DataArray(
        X,
        dims=("time", "src", "dst"),
        coords={
            "time": pd.date_range("2024-03-30", periods=8, freq="h"),
            "src": list("abc"),
            "dst": ["1", "2", "3", "4"],
            "lat": ("src", [1.0, 2.0, 3.0]),
        },
        attrs={"units": "Mb"},
        name="flow",
    )


def wide():
    return array().drop_vars("lat").stack(entry=("src", "dst")).to_pandas()


def long():
    return array().drop_vars("lat").to_series().dropna().rename("bytes").reset_index()


def expected():
    model = Plain()
    return np.stack([model.update(x).mean for x in X])


@pytest.mark.parametrize(
    "given",
    [
        lambda: X,
        lambda: np.ma.masked_invalid(X),
        lambda: dask.array.from_array(X, chunks=(3, 3, 4)),
        array,
        lambda: array().transpose("src", "time", "dst"),
        lambda: array().chunk(time=3),
        lambda: array().to_dataset(),
        wide,
        lambda: wide().tz_localize("Europe/Berlin"),
        long,
        lambda: long().sample(frac=1, random_state=1),
        lambda: pl.from_pandas(long()),
        lambda: long().astype({"src": "category", "bytes": "Float64"}),
    ],
)
def test_every_kind_of_recording_gives_the_same(given):
    found = ut.clean(given(), model=Plain(), time="time")
    np.testing.assert_allclose(found["mean"].transpose("time", ...), expected())
    assert set(found) == {"data", "mean", "std", "outlier_probability", "flags", "status", "weights", "events"}
    np.testing.assert_array_equal(found["data"].transpose("time", ...), X)
    np.testing.assert_array_equal(found["flags"], found["outlier_probability"] >= 0.5)
    assert found["flags"].dtype == bool
    assert found["weights"].sizes == {"time": 8, "predictor": 3}


def test_labels_coordinates_and_units_are_kept():
    model = Plain()
    found = ut.clean(array(), model=model)
    xr.testing.assert_identical(
        found["mean"].drop_attrs().rename(None), array().copy(data=expected()).drop_attrs().rename(None)
    )
    assert found["std"].attrs["units"] == "Mb"
    assert "units" not in found["flags"].attrs
    assert model.labels == {"src": ("a", "b", "c"), "dst": ("1", "2", "3", "4")}


def test_time_zones_are_kept_and_shown():
    zoned = wide().tz_localize("Europe/Berlin")
    for X in (zoned, pl.from_pandas(long().assign(time=lambda x: x.time.dt.tz_localize("Europe/Berlin")))):
        time = ut.clean(X, model=Plain())["time"]
        assert time.attrs == {"time_zone": "UTC", "time_zone_of_source": "Europe/Berlin"}
        assert time.to_index().tz_localize("UTC").equals(zoned.index.tz_convert("UTC"))


def test_a_recording_larger_than_memory_goes_through_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cleaning, "MOST_BYTES", 1000)
    with pytest.raises(RunError, match=r"would take 0\.0 GiB of memory: name a folder for them with out="):
        ut.clean(array(), model=Plain())
    seen = []
    found = ut.clean(
        array().chunk(time=3), model=Plain(), out=tmp_path / "out.zarr", progress=lambda n, of: seen.append(n)
    )
    assert dask.is_dask_collection(found["mean"])
    np.testing.assert_allclose(found["mean"], expected(), rtol=1e-6)
    np.testing.assert_allclose(found["data"], X, rtol=1e-6)
    np.testing.assert_array_equal(found["flags"], found["outlier_probability"] >= 0.5)
    assert seen[-1] == 8
    assert [found[name].attrs.get("units") for name in ("data", "mean", "std", "outlier_probability")] == ["Mb"] * 3 + [
        None
    ]
    xr.testing.assert_identical(found["lat"].drop_attrs(), array()["lat"].drop_attrs())


def test_a_folder_of_results_says_what_was_irregular_and_in_which_zone_times_were(tmp_path):
    zoned = wide().tz_localize("Europe/Berlin")
    found = ut.clean(pd.concat([zoned, zoned.iloc[:1]]), model=Plain(), out=tmp_path / "out.zarr")
    assert "came after a later one and was kept where it came" in " ".join(found.attrs["notices"])
    assert found["time"].attrs["time_zone_of_source"] == "Europe/Berlin"


def test_results_of_a_recording_show_an_anomaly_and_what_was_irregular():
    pytest.importorskip("matplotlib")
    given = wide()
    given.iloc[5, 0] = 500.0
    found = ut.clean(pd.concat([given, given.iloc[:1]]), model=Plain())
    assert "came after a later one and was kept where it came" in " ".join(found.attrs["notices"])
    labels = {dim: found[dim].values[0] for dim in found["mean"].dims[1:]}
    found["outlier_probability"][5] = 1.0
    shown = ut.plot.entry(found, **labels).get_legend().get_texts()
    assert {"data", "flagged"} <= {text.get_text() for text in shown}


def test_progress_is_shown_where_somebody_looks(capsys):
    ut.clean(X, model=Plain(), progress=True)
    assert "cleaning: 8 of 8 slices (100 %)" in capsys.readouterr().err
    ut.clean(X, model=Plain())
    assert not capsys.readouterr().err


def test_smoothing_combines_two_passes(monkeypatch):
    monkeypatch.setattr(cleaning, "default_model", lambda *_: Plain())
    found = ut.clean(array(), smooth=True)
    backwards = ut.clean(X[::-1], model=Plain())["mean"].values[::-1]
    np.testing.assert_allclose(found["mean"], (expected() + backwards) / 2)  # the stub has the same std everywhere
    assert (found["std"] <= 1.5).all()
    assert found.attrs["smooth"] == 1


def test_smoothing_of_a_recording_larger_than_memory_goes_through_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cleaning, "default_model", lambda *_: Plain())
    monkeypatch.setattr(cleaning, "MOST_BYTES", 10**9)
    given = array().assign_coords(time=pd.date_range("2024-03-30", periods=8, freq="h"))
    here = ut.clean(given, smooth=True, false_alarms="1/1000")
    monkeypatch.setattr(cleaning, "MOST_BYTES", 1000)
    seen = []
    there = ut.clean(
        given.chunk(time=3),
        smooth=True,
        false_alarms="1/1000",
        out=tmp_path / "out.zarr",
        progress=lambda done, of: seen.append((done, of)),
    )
    assert dask.is_dask_collection(there["mean"].data)
    xr.testing.assert_allclose(there.load(), here)
    assert there.attrs == here.attrs
    assert {name: one.attrs for name, one in there.items()} == {name: one.attrs for name, one in here.items()}
    assert seen[-1] == (16, 16)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    with pytest.raises(RunError, match="out must be a new folder"):
        ut.clean(given, smooth=True, out=tmp_path / "out.zarr")


def test_what_smoothing_has_written_is_gone_where_it_failed(tmp_path, monkeypatch):
    class Refuses(Plain):
        def update(self, x):
            raise ValueError("no")

    monkeypatch.setattr(cleaning, "default_model", lambda *_: Refuses())
    with pytest.raises(ValueError, match="no"):
        ut.clean(X, smooth=True, out=tmp_path / "out.zarr")
    assert not list(tmp_path.iterdir())


def test_the_pass_backwards_sees_the_same_gaps(monkeypatch):
    seen = []

    class Timed(Plain):
        def in_order(self, time):
            return time

        def update(self, x, time=None):
            seen.append(time)
            return super().update(x)

    monkeypatch.setattr(cleaning, "default_model", lambda *_: Timed())
    times = np.array([0.0, 1.0, 2.5, 9.0, 10.0])
    ut.clean(array()[:5].assign_coords(time=times), smooth=True)
    np.testing.assert_array_equal(seen[:5], times)
    np.testing.assert_array_equal(np.diff(seen[5:]), np.diff(times)[::-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": wide().iloc[:0]}, "the frame has no rows"),
        ({"X": wide().set_axis([f"c{n // 2}" for n in range(12)], axis=1)}, "two columns of the same name"),
        ({"X": long().assign(more=1.0, note="x")}, "name them with time=…, modes=… and value=…"),
        ({"X": long().drop(columns="time")}, "name them with time=…"),
        ({"X": long(), "time": "when"}, "has no column 'when': its columns are 'time', 'src', 'dst', 'bytes'"),
        ({"X": pd.concat([long(), long()])}, "two rows for a, 1 at time 2024-03-30"),
        ({"X": {"a": 1}}, "source must be a path, '-', an array or a frame, got dict"),
        ({"X": array().to_dataset().assign(other=array())}, "holds several arrays"),
        (
            {"X": X, "smooth": True, "model": StubModel()},
            "smooth begins twice with a new tracker, got a model too: leave it out",
        ),
        ({"X": X, "believed_after": 9, "model": StubModel()}, "believed_after is for new trackers"),
        ({"X": X, "false_alarms": "often"}, "false_alarms must be a rate such as '1/day'"),
        ({"X": X, "threshold": 2}, "threshold must be a probability"),
        ({"X": np.zeros((0, 3))}, "no slices"),
    ],
)
def test_what_cannot_be_cleaned_is_refused_in_one_sentence(options, message):
    with pytest.raises((StreamError, RunError), match=message) as refusal:
        ut.clean(**options)
    assert "\n" not in str(refusal.value)


def test_options_that_there_are_not_are_refused():
    with pytest.raises(TypeError, match="clean has no option 'tim': did you mean time"):
        ut.clean(array(), tim="time")
    with pytest.raises(TypeError, match="clean has no option 'zzz': there are format, "):
        ut.clean(array(), zzz=1)


def test_the_numbers_that_a_filter_leaves_are_no_times():
    """Rows of a long frame that were sorted, sampled or filtered have an index of integers without a name."""
    given = long().rename(columns={"time": "when"})
    expected = ut.clean(given, model=Plain())
    assert dict(expected.sizes) == {"when": 8, "src": 3, "dst": 4, "predictor": 3}
    found = ut.clean(given.sample(frac=1, random_state=0), model=Plain())
    xr.testing.assert_equal(found, expected)
    years = wide().set_axis(list(range(1990, 1998)), axis=0)  # all are numbers: the index counts
    assert ut.clean(years, model=Plain())["time"].values[0] == 1990


def test_a_folder_that_holds_results_is_refused(tmp_path):
    pytest.importorskip("dask")
    ut.clean(X, model=Plain(), out=tmp_path / "x.zarr")
    with pytest.raises(RunError, match=r"out must be a new folder, .*x\.zarr holds results already: remove it"):
        ut.clean(X, model=Plain(), out=tmp_path / "x.zarr")


def test_incidents_at_the_rate_that_is_accepted(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    values = rng.normal(10, 1, (60, 3, 4))
    values[50:53, 1] += 30
    given = xr.DataArray(values, dims=("time", "src", "dst"), coords={"src": list("abc")})
    lately = []
    monkeypatch.setattr(cleaning, "default_model", lambda *asked: lately.append(asked) or Plain())
    found = ut.clean(given, false_alarms="1/1000", believed_after=9)
    assert lately == [(False, 9)]
    assert {"false_alarms": "1/1000", "believed_after": 9}.items() <= found.attrs.items()
    assert any("src b" in sentence and "slice 50" in sentence for sentence in found["incidents"].values)
    stored = ut.clean(given, model=Plain(), false_alarms="1/1000", out=tmp_path / "x.zarr")
    assert list(stored["incidents"].values) == list(found["incidents"].values)
    assert list(stored["incident_details"].values) == list(found["incident_details"].values)
    where = dict(zip(found["mean"].dims[1:], ("b", 0), strict=True))
    for one in (found, tmp_path / "x.zarr"):
        assert str(ut.explain(one, **where)).count("Incident: src b") == 1
    hours = pd.date_range("2026-03-27", periods=60, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame(values.reshape(60, -1), hours, pd.MultiIndex.from_product([list("abc"), range(4)]))
    zoned = ut.clean(frame, model=Plain(), false_alarms="1/1000")
    assert {sentence[-4:] for sentence in zoned["incidents"].values} == {" UTC"}
    assert "incidents" not in ut.clean(given, model=Plain())
