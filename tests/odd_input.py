"""What odd tables are made of, and how they may be refused."""

import datetime

import numpy as np
import pandas as pd
from hypothesis import strategies as st

LABEL = st.one_of(
    st.text(max_size=3),
    st.integers(-3, 3),
    st.none(),
    st.just(float("nan")),
    st.booleans(),
    st.sampled_from([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="Europe/Berlin"), pd.NaT]),
    st.tuples(st.integers(0, 2), st.text(max_size=1)),
    st.sampled_from([datetime.date(2024, 1, 1), pd.Interval(0, 1), pd.Period("2024-01")]),
)
KINDS = ["float64", "float32", "int64", "Float64", "Int64", "boolean", "bool", "category", "string", "object", "mixed"]
KINDS += ["datetime64[ns]", "complex128", "Sparse[float]", "timedelta64[ns]"]
INDICES = ["counted", "dated", "zoned", "repeated", "mixed", "categories", "levels", "missing", "filtered"]


def column(kind, rows):
    """Of one kind."""
    numbers = np.arange(rows, dtype=float)
    if kind == "mixed":
        return pd.Series([1, "a", None, 2.5, pd.NaT][:rows] + [0.0] * max(0, rows - 5), dtype=object)
    if kind in ("datetime64[ns]", "timedelta64[ns]"):
        return pd.Series(numbers.astype("int64")).astype(kind)
    if kind in ("boolean", "bool"):
        return pd.Series(numbers > 1).astype(kind)
    return pd.Series(numbers).astype(kind)


def index(kind, rows):
    """Labels of rows."""
    dates = pd.date_range("2024-03-30", periods=rows, freq="h")
    made = {
        "counted": pd.RangeIndex(rows),
        "dated": dates,
        "zoned": dates.tz_localize("Europe/Berlin", nonexistent="shift_forward"),
        "repeated": pd.Index(["a"] * rows),
        "mixed": pd.Index([1, "a", None, 2.5, *range(10, 10 + rows)][:rows], dtype=object),
        "categories": pd.CategoricalIndex([str(n) for n in range(rows)]),
        "levels": pd.MultiIndex.from_tuples([(n % 2, n) for n in range(rows)] or [], names=["even", "n"])
        if rows
        else pd.MultiIndex.from_arrays([[], []]),
        "missing": pd.Index([None] * rows),
        "filtered": pd.Index([7 * (rows - n) for n in range(rows)], dtype="int64"),
    }
    return made[kind][:rows]


def attempted(what, *arguments, **options):
    """What it gives, or None if it was refused in one sentence."""
    try:
        return what(*arguments, **options)
    except (TypeError, ValueError) as refusal:
        text = str(refusal)
        assert text, "a refusal says why"
        assert "\n" not in text
        assert ": " in text, f"what to do is missing in {text!r}"
        assert len(text) < 500
        return None
