"""pandas DataFrames of rows into a shard, and what was learned as a DataFrame."""

from __future__ import annotations

import contextlib
import json
import operator
import os
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from undertow.cluster.completed import Completed
from undertow.cluster.places import SEPARATOR
from undertow.cluster.plan import Plan
from undertow.cluster.shard import Shard

ROWS = ("ut_stream", "ut_time", "ut_entry", "ut_value")
"""Columns of rows whose entries are numbered. Spark makes named tuples of them: no underscore before them."""
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def one_thread() -> None:
    """A worker of an engine is one core: JAX is to use one. To be called before it computes for the first time.

    Batches of LAPACK calls on several threads can wait for each other for ever, too.
    """
    given = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in given:
        os.environ["XLA_FLAGS"] = f"{given} {_ONE_THREAD}".strip()


def span(name: str, given: Any, dates: bool, least: int = 1) -> int:
    """A duration in units of the time, which are microseconds where times are dates.

    Args:
        name: Of the argument.
        given: What `pandas.Timedelta` takes where times are dates, an integer where they are integers.
        dates: Whether times are dates.
        least: The shortest one.

    Raises:
        ValueError: It is no such duration.

    Examples:
        >>> span("ttl", "20 minutes", True), span("ttl", 20, False)
        (1200000000, 20)
    """
    found, is_number = least - 1, isinstance(given, int | float | np.number) and not isinstance(given, np.timedelta64)
    with contextlib.suppress(ValueError, TypeError):
        if not dates and not isinstance(given, bool):
            found = operator.index(given)
        elif dates and not is_number:  # of which unit would it be?
            found = int(pandas.Timedelta(given) // pandas.Timedelta(1, "us"))
    if found < least:
        wanted = "a duration such as '7 days'" if dates else f"an integer of {least} or more, in units of the time"
        raise ValueError(f"{name} must be {wanted}, got {given!r}.")
    return found


def numbered(rows: Any, plan: Plan) -> Any:
    """Rows with the user's columns, as `ROWS` has them; rows without a stream or a time are left out.

    Where labels come and go, all labels of an entry stand in place of its number; none where one is missing.

    Args:
        rows: A DataFrame.
        plan: Which columns mean what.
    """
    rows = rows[rows[plan.key].notna() & rows[plan.time].notna()]
    time = rows[plan.time]
    moment = time.to_numpy("datetime64[us]").astype(np.int64) if plan.dates else time.to_numpy(np.int64)
    columns = (rows[plan.key].astype(str), moment, _entry(rows, plan), rows[plan.value])
    return pandas.DataFrame({name: np.asarray(column) for name, column in zip(ROWS, columns, strict=True)})


def _entry(rows: Any, plan: Plan) -> Any:
    known = np.ones(len(rows), np.bool_)
    if plan.grows:
        for name in plan.modes:
            known &= rows[name].notna().to_numpy()
        texts = (rows[name].astype(str) for name in plan.modes)
        words = [SEPARATOR.join(row) for row in zip(*texts, strict=True)]
        return pandas.Series(words, dtype=object).where(known, None).to_numpy()
    entry = np.zeros(len(rows), np.int64)
    for name, labels in zip(plan.modes, plan.labels, strict=True):
        index = pandas.Index(labels).get_indexer(rows[name].astype(str))
        entry, known = entry * len(labels) + index, known & (index >= 0)
    return np.where(known, entry, -1)


def add(shard: Shard, rows: Any) -> None:
    """Rows as `ROWS` has them; packed slices are taken apart."""
    stream, time, entry, value = (rows[name].to_numpy() for name in ROWS)
    if not shard.plan.modes:
        size = shard.plan.entries
        packed = [_flat(one, size) for one in value]
        wrong = next((one.size for one in packed if one.size != size), None)
        if wrong is not None:
            raise ValueError(f"a packed slice must have {size} entries, as modes={shard.plan.shape} says, got {wrong}.")
        stream, time = np.repeat(stream, size), np.repeat(time, size)
        entry, value = np.tile(np.arange(size), len(packed)), np.concatenate([*packed, np.zeros(0)])
    if shard.plan.grows:
        number, words = pandas.factorize(entry)  # a missing one is −1
        entry = np.append(shard.places.numbers(words.tolist()), -1)[number]
    shard.add(stream, time, entry, np.asarray(value, np.float64))


def frame(done: Completed) -> Any:
    """One row a slice; arrays are lists, missing values None, incidents JSON."""
    told = [
        [json.dumps({"change": one.what, **one.incident.to_json()}) for one in changes] for changes in done.incidents
    ]
    columns = {
        "ut_stream": done.stream.astype(object),
        "ut_time": done.time,
        "value": list(np.where(np.isnan(done.values), np.array(None), done.values)),
        "mean": list(done.mean),
        "std": list(done.std),
        "outlier_probability": list(done.outlier_probability),
        "status": [list(one) for one in done.status],
        "incidents": told,
        "labels": [[list(mode) for mode in one] for one in done.labels] or [[] for _ in done.status],
    }
    return pandas.DataFrame(columns)


def _flat(packed: Any, size: int) -> NDArray[np.float64]:
    """All entries of a packed slice, row by row; of one that is null all are missing."""
    return np.full(size, np.nan) if packed is None else np.ravel(np.asarray(packed, np.float64))
