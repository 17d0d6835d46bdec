"""The table of alerts in every format."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from stubs import StubModel, slice_at, store_stub

from undertow.runs.store.reader import open_store


def expected(count=20, shape=(3, 4)):
    model = StubModel()
    return [model.update(slice_at(index, shape)) for index in range(count)]


def rows_of(format, folder):
    if format == "parquet":
        return pq.read_table(folder / "alerts").to_pylist()
    with open(folder / f"alerts.{format}", newline="") as file:
        if format == "jsonl":
            return [json.loads(line) for line in file]
        return list(csv.DictReader(file))


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_alerts_are_the_entries_above_the_threshold(tmp_path, format):
    summary = store_stub(tmp_path / "s", alerts=format, threshold=0.9, checkpoint_every=7)
    rows = rows_of(format, tmp_path / "s")
    wanted = [
        (t, "abc"[i], j, slice_at(t)[i, j], r.low_rank[i, j], r.std[i, j], r.outlier_probability[i, j])
        for t, r in enumerate(expected())
        for i, j in zip(*np.nonzero(r.outlier_probability >= 0.9), strict=True)
    ]
    assert len(wanted) > 5
    assert summary.alerts == len(wanted)
    assert list(rows[0]) == ["time", "site", "column", "value", "expected", "std", "probability"]
    converted = [(int(r["time"]), r["site"], int(r["column"]), *map(float, list(r.values())[3:])) for r in rows]
    assert converted == wanted
    assert len(list(open_store(tmp_path / "s").alerts())) == len(wanted)


def test_no_alerts_if_not_asked_for(tmp_path):
    store_stub(tmp_path / "s", alerts=None)
    assert not list((tmp_path / "s").glob("alerts*"))
    assert list(open_store(tmp_path / "s").alerts()) == []
