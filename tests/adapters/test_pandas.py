"""The accessor gives frames with the index and the columns of the frame."""

import numpy as np
import pandas as pd
import pytest
from stubs import StubTracker

import undertow.adapters.pandas  # noqa: F401 (registers it)


class Model(StubTracker):
    def update(self, x):
        result = super().update(x)
        result.plain = lambda name: getattr(result, name)
        return result


def frame():
    values = np.random.default_rng(0).normal(10, 1, (8, 6))
    values[3, 2] = np.nan
    values[6, 1] = 500
    columns = pd.MultiIndex.from_product([list("ab"), list("xyz")], names=["src", "dst"])
    return pd.DataFrame(values, pd.date_range("2024", periods=8, tz="Europe/Berlin"), columns)


@pytest.mark.parametrize("times", ["zone", "texts", "dates"])
def test_long_frames_like_the_frame(times):
    wide = frame().droplevel(0, axis=1).set_axis(list("abcdef"), axis=1).rename_axis(index="when", columns="room")
    x = wide.stack().dropna().rename("celsius").reset_index().sample(frac=1, random_state=0)
    if times != "zone":
        x["when"] = x["when"].dt.tz_localize(None)
    if times == "texts":
        x["when"] = x["when"].dt.strftime("%Y-%m-%dT%H:%M")
    flags = x.undertow.outliers(model=Model(), time="when")
    assert flags.index.equals(x.index)
    expected = wide.undertow.outliers(model=Model()).stack()
    assert flags.sum() == (expected & wide.notna().stack()).sum()
    assert flags[x["celsius"] == 500].all()
    completed = x.undertow.completed(model=Model(), time="when")
    assert list(completed) == ["when", "room", "celsius"]
    assert len(completed) == wide.size
    if times == "zone":
        assert completed["when"].dtype == x["when"].dtype
        both = completed.merge(x, on=["when", "room"])
        assert len(both) == len(x)
        np.testing.assert_array_equal(both["celsius_x"], both["celsius_y"])
    assert completed["celsius"].notna().all()


@pytest.mark.parametrize("columns", ["levels", "names"])
def test_frames_like_the_frame(columns):
    x = frame() if columns == "levels" else frame().set_axis(list("abcdef"), axis=1)
    x = x.iloc[:, [3, 1, 2, 0, 5, 4]]
    completed = x.undertow.completed(model=Model())
    assert completed.notna().all().all()
    pd.testing.assert_frame_equal(completed.where(x.notna()), x)
    flags = x.undertow.outliers(model=Model())
    assert flags.iloc[6, 1]
    assert flags.columns.equals(x.columns)
    assert flags.index.equals(x.index)
    assert x.undertow.clean(model=Model())["mean"].sizes["time"] == 8
