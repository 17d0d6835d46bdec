"""Odd frames: every one is taken, or refused in one sentence that names what is wrong."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_input import INDICES, KINDS, LABEL, attempted, column, index

from undertow.inputs.dense import as_slice
from undertow.inputs.labels.slices import taken
from undertow.inputs.labels.stacks import slices_of
from undertow.sources.opening import open_stream

POLARS = [pl.Float64, pl.Int8, pl.Boolean, pl.String, pl.Categorical, pl.Date, pl.Datetime, pl.Null, pl.List(pl.Int8)]


@pytest.mark.slow
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 6),
    st.lists(st.tuples(LABEL, st.sampled_from(KINDS)), min_size=0, max_size=4),
    st.sampled_from(INDICES),
)
def test_odd_frames_of_pandas(rows, columns, kind):
    frame = pd.concat([column(k, rows) for _, k in columns], axis=1) if columns else pd.DataFrame(index=range(rows))
    frame.columns = pd.Index([name for name, _ in columns], dtype=object, tupleize_cols=False)
    frame.index = index(kind, rows)
    found = attempted(taken, frame, None, None, None)
    if found is not None and attempted(as_slice, found.x, found.mask) is not None:
        back = found.way.back(np.asarray(found.x, float))
        assert back.shape[0] >= frame.shape[0]
        np.testing.assert_array_equal(back.to_numpy(float).size, np.size(found.x))
    for one in attempted(slices_of, frame) or ():
        attempted(taken, one, None, None, None)
    stream = attempted(open_stream, frame)
    if stream is not None:
        attempted(lambda: [item.values for item in stream.slices()])


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 4),
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=2),  # polars itself panics at NUL
        st.sampled_from(POLARS),
        max_size=4,
    ),
)
def test_odd_frames_of_polars(rows, columns):
    numbers = pl.Series(range(rows), dtype=pl.Int64)

    def made(kind):
        if kind in (pl.Null, pl.List(pl.Int8)):
            return pl.Series([None] * rows, dtype=kind)
        return numbers.cast(pl.String).cast(kind) if kind == pl.Categorical else numbers.cast(kind)

    frame = pl.DataFrame({name: made(kind) for name, kind in columns.items()})
    found = attempted(taken, frame, None, None, None)
    if found is not None and attempted(as_slice, found.x, found.mask) is not None:
        assert len(found.way.back(np.asarray(found.x))) >= len(frame)
    for one in attempted(slices_of, frame) or ():
        attempted(taken, one, None, None, None)
    stream = attempted(open_stream, frame)
    if stream is not None:
        attempted(lambda: [item.values for item in stream.slices()])


def test_times_with_and_without_zone_do_not_mix():
    frame = pd.DataFrame({"time": [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02", tz="UTC")], "a": [1.0, 2.0]})
    for odd in (frame, frame.set_index("time")):
        with pytest.raises(ValueError, match="with a time zone and times without: give all of them one, or none"):
            list(open_stream(odd).slices())
    frame["time"] = [pd.Timestamp("2024-01-01", tz="Europe/Berlin"), pd.Timestamp("2024-01-02", tz="UTC")]
    stream = open_stream(frame)
    assert [item.time for item in stream.slices()] == [np.datetime64("2023-12-31T23:00"), np.datetime64("2024-01-02")]
    frame["time"] = [pd.Timestamp("2024-01-01"), "later"]
    with pytest.raises(ValueError, match="what is no date: make all of them dates"):
        open_stream(frame.set_index("time"))


def test_what_is_wrong_with_a_frame_is_named():
    frame = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in "abc"})
    with pytest.raises(ValueError, match="two columns of the same name, 'b': rename one"):
        open_stream(frame.set_axis(["a", "b", "b"], axis=1))
    frame["b"] = [1.0, "n/a", 3.0]
    with pytest.raises(ValueError, match="such as 'n/a' in row 1 of 'b'"):
        open_stream(frame)
    with pytest.raises(ValueError, match="leave out what is no number"):
        open_stream(frame.assign(b=1 + 2j))  # what is imaginary is not dropped
