"""Labelled slices of every library go into the order of the stream and back; nothing is compiled here."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from undertow.inputs.labels.names import Labels, labels_in, named_labels, with_labels
from undertow.inputs.labels.slices import taken

SRC, DST = tuple("ABCDEF"), (0, 10, 20, 30, 40)
STREAM = Labels(("src", "dst"), (SRC, DST))
VALUES = np.arange(30.0).reshape(6, 5)


def array(values=VALUES, **attributes):
    return xr.DataArray(values, dims=("src", "dst"), coords={"src": list(SRC), "dst": list(DST)}, **attributes)


def frame():
    return pd.DataFrame(VALUES, pd.Index(SRC, name="src"), pd.Index(DST, name="dst"))


def long_frame():
    rows = [(s, str(d), VALUES[i, j]) for i, s in enumerate(SRC) for j, d in enumerate(DST)]
    return pl.DataFrame(rows, schema=["src", "dst", "bytes"], orient="row")


def test_an_unlabelled_array_goes_through_untouched():
    found = taken(VALUES, None, STREAM, (6, 5))
    assert found.x is VALUES
    assert found.way is None
    assert found.labels is STREAM


@pytest.mark.slow
@given(st.permutations(SRC), st.permutations(DST), st.booleans())
def test_any_order_of_modes_and_labels_is_the_same_slice(src, dst, turned):
    x = array().sel(src=list(src), dst=list(dst))
    for one in (x.T if turned else x, (frame().loc[list(src), list(dst)].T if turned else x.to_pandas())):
        found = taken(one, None, STREAM, (6, 5))
        np.testing.assert_array_equal(found.x, VALUES)
        back = found.way.back(VALUES)
        assert type(back) is type(one)
        assert back.equals(one)


@pytest.mark.slow
@given(st.sets(st.sampled_from(SRC), min_size=1), st.sets(st.sampled_from(DST), min_size=1))
def test_labels_that_a_slice_lacks_are_missing_and_its_results_have_them(src, dst):
    src, dst = sorted(src, reverse=True), sorted(dst)
    for part in (array().sel(src=src, dst=dst), frame().loc[src, dst]):
        found = taken(part, None, STREAM, (6, 5))
        expected = np.where(np.isin(SRC, src)[:, None] & np.isin(DST, dst), VALUES, np.nan)
        np.testing.assert_array_equal(found.x, expected)
        back = found.way.back(VALUES)
        assert float(back.loc["C", 20]) == VALUES[2, 2]
        assert back.shape == (6 if len(src) < 6 else len(src), 5)


def test_coordinates_attributes_and_name_of_an_array_are_kept():
    x = array(attrs={"units": "Mb"}, name="flow").assign_coords(
        lat=("src", np.arange(6.0)), time=np.datetime64("2024-01-01", "ns")
    )
    back = taken(x, None, None, None).way.back(VALUES + 1)
    xr.testing.assert_identical(back, x.copy(data=VALUES + 1))
    part = taken(x.isel(src=[2, 0]), None, STREAM, (6, 5)).way.back(VALUES)
    assert part.attrs == {"units": "Mb"}
    assert part.time == x.time
    assert part.src.values.tolist() == list(SRC)


def test_the_first_labelled_slice_names_the_stream():
    found = taken(array(), None, None, None)
    assert found.labels == STREAM
    assert found.labels.of((1, 2)) == {"src": "B", "dst": 20}
    assert taken(pd.DataFrame(VALUES), None, None, None).labels.coords == (None, None)  # it counts, and says nothing


def test_levels_of_a_multi_index_are_modes():
    series = frame().stack()
    found = taken(series.sample(frac=1, random_state=1), None, STREAM, (6, 5))
    np.testing.assert_array_equal(found.x, VALUES)
    pd.testing.assert_series_equal(found.way.back(VALUES).sort_index(), series.sort_index(), check_names=False)
    few = series.iloc[[3, 8]]
    found = taken(few, None, STREAM, (6, 5))
    assert np.isnan(found.x).sum() == 28
    assert found.way.back(VALUES)["F", 40] == 29
    wide = pd.concat({"in": frame(), "out": 2 * frame()}, axis=1)
    found = taken(wide, None, None, None)
    assert found.labels == Labels(("mode_1", "mode_2", "mode_3"), (SRC, ("in", "out"), DST)) or found.x.shape == (
        6,
        2,
        5,
    )
    pd.testing.assert_frame_equal(found.way.back(found.x), wide)


def test_columns_of_a_polars_frame_that_are_not_numbers_are_modes():
    x = long_frame()
    found = taken(x.sample(fraction=1, shuffle=True, seed=1), None, None, None)
    assert found.labels.dims == ("src", "dst")
    assert found.x.shape == (6, 5)
    assert found.way.back(found.x).sort("src", "dst").equals(x.sort("src", "dst"))
    wide = pl.DataFrame({"src": list(SRC), **{f"c{n}": VALUES[:, n] for n in range(5)}})
    found = taken(wide, None, None, None)
    np.testing.assert_array_equal(found.x, VALUES)
    assert found.way.back(found.x).equals(wide)
    part = taken(wide[[4, 1]], None, found.labels, (6, 5))
    np.testing.assert_array_equal(part.x[[1, 4]], VALUES[[1, 4]])
    assert part.way.back(VALUES).equals(wide)


def test_nullable_and_categorical_frames():
    x = frame().astype("Float64")
    x.iloc[1, 1] = pd.NA
    x.index = pd.CategoricalIndex(x.index, name="src")
    found = taken(x, None, STREAM, (6, 5))
    assert np.isnan(found.x[1, 1])
    assert isinstance(found.way.back(VALUES).index, pd.CategoricalIndex)


def test_a_mask_goes_the_way_of_its_slice():
    mask = VALUES % 2 == 0
    expected = np.where(mask, VALUES, np.nan)
    turned = array().T.isel(src=[3, 1, 2, 0, 5, 4])
    found = taken(turned, mask.T[:, [3, 1, 2, 0, 5, 4]], STREAM, (6, 5))
    np.testing.assert_array_equal(found.x, expected)
    found = taken(turned, array(mask), STREAM, (6, 5))
    np.testing.assert_array_equal(found.mask, mask)
    found = taken(frame().stack(), mask.ravel(), STREAM, (6, 5))
    np.testing.assert_array_equal(found.x, expected)
    with pytest.raises(ValueError, match=r"mask must have the shape of x, \(5, 6\), got \(6, 5\)"):
        taken(turned, mask, STREAM, (6, 5))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (array().assign_coords(src=list("ABCDEX")), "labels of src that are not among the 6 of the stream, 'X'"),
        (array().assign_coords(src=list("ABCDEE")), "labels of src must all be different, got 'E' twice"),
        (array().rename(src="from"), "must have the modes src, dst of the slices before it, got from, dst"),
        (array().expand_dims(time=[0]), "got time, src, dst: give one slice, without time"),
        (array().to_dataset(name="flow"), "must be one array, got an xarray.Dataset of flow"),
        (frame().assign(note="x"), "column 'note' of x must hold real numbers, got dtype"),
        (pd.concat([frame(), frame()]).stack(), "two rows for 'A', 0: combine them first"),
        (frame().set_axis([None, *"BCDEF"]), "labels must not be missing"),
        (pl.DataFrame({"src": ["A"]}), "must have columns of numbers"),
        (pl.DataFrame({"a": [1.0]}).lazy(), r"got a polars.LazyFrame: use x.collect\(\)"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(x, message):
    with pytest.raises((TypeError, ValueError), match=message) as refusal:
        taken(x, None, STREAM, (6, 5))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "labels",
    [
        STREAM,
        Labels(("a", "b"), (None, ((1, "x"), (2, "y")))),
        Labels(("day", "size"), (tuple(np.array(["2024-01-01", "2024-01-02"], "M8[ns]")), (0.1, float("inf")))),
        Labels(("text",), (("", "é\0", "\ud800", "1"),)),
    ],
)
def test_labels_survive_a_file_exactly(labels):
    shape = [2 if one is None else len(one) for one in labels.coords]
    again = labels_in(with_labels(({"shape": shape}, {}), labels), "here")
    assert again == labels
    assert [[type(x) for x in one or ()] for one in again.coords] == [
        [type(x) for x in one or ()] for one in labels.coords
    ]
    with pytest.raises(ValueError, match="checkpoint here holds labels that do not fit it"):
        labels_in(with_labels(({"shape": [9, *shape]}, {}), labels), "here")


def test_labels_may_be_given_as_a_mapping():
    assert named_labels({"src": list(SRC), "dst": np.array(DST)}) == STREAM
    with pytest.raises(TypeError, match="labels must map the name of each mode"):
        named_labels(["A"])
    with pytest.raises(TypeError, match="labels of src must be a list"):
        named_labels({"src": "ABC"})
    with pytest.raises(ValueError, match="got 'A' twice"):
        named_labels({"src": ["A", "A"]})


class Tensor:
    """As torch has it: a type of its own, memory through DLPack, NumPy not without detach() and cpu()."""

    def __init__(self, values, refused=None):
        self._values, self.shape, self.dtype, self._refused = values, values.shape, "torch.float32", refused

    def detach(self):
        return self

    def cpu(self):
        return self

    def __dlpack__(self, **settings):
        if self._refused:
            raise self._refused
        return self._values.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_arrays_of_other_libraries_lend_their_memory():
    found = taken(Tensor(VALUES), Tensor(VALUES > 3), None, None)
    assert np.shares_memory(found.x, VALUES)
    np.testing.assert_array_equal(found.mask, VALUES > 3)
    with pytest.raises(TypeError, match="convert it to float32 first"):
        taken(Tensor(VALUES, BufferError("bfloat16")), None, None, None)


def test_the_way_back_can_be_pickled():
    for x in (array(), frame(), frame().stack(), long_frame()):
        way = taken(x, None, None, None).way
        again = pickle.loads(pickle.dumps(way))
        assert again.back(VALUES).equals(way.back(VALUES))
