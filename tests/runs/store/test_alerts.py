"""The table of alerts in every format."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from stubs import StubModel, StubStream, reported_store, slice_at, store_stub

from undertow.report import write_report
from undertow.runs import RunError, StoreError
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
        (t, "abc"[i], j, slice_at(t)[i, j], r.mean[i, j], r.std[i, j], r.outlier_probability[i, j])
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


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize(
    "torn", [b'19,"a', b"19,a,1,", b"19,a,1,5.2,4.0,1.5,0.9", b'{"time": 19, "si', b"\0" * 9, b"19,\xc3"]
)
def test_a_last_line_that_is_half_written_is_left_out(tmp_path, format, torn):
    folder = reported_store(tmp_path / "s", alerts=format)
    before = list(open_store(folder).alerts())
    with open(folder / f"alerts.{format}", "ab") as file:
        file.write(torn)
    assert list(open_store(folder).alerts()) == before


def test_half_written_within_a_label_of_two_lines(tmp_path):
    folder = reported_store(tmp_path / "s")
    before = list(open_store(folder).alerts())
    with open(folder / "alerts.csv", "ab") as file:
        file.write(b'19,"first\nsecond')
    assert list(open_store(folder).alerts()) == before
    with open(folder / "alerts.csv", "ab") as file:
        file.write(b"\n")
    assert list(open_store(folder).alerts()) == before
    assert write_report(folder).exists()


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_damage_before_the_last_line_is_called_damage(tmp_path, format):
    folder = reported_store(tmp_path / "s", alerts=format)
    path = folder / f"alerts.{format}"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3][:9] + b"\n", *lines[4:]]))
    with pytest.raises(StoreError, match=r"alerts\..* is damaged at alert \d \(.*\): restore it from a copy"):
        list(open_store(folder).alerts())


FORMULA = "=HYPERLINK(1)"


def formulas():
    stream = StubStream(20)
    stream.labels = ((FORMULA, "@b", "'c"), None)
    return stream


def test_formulas_in_labels_are_text_on_request(tmp_path):
    plain = reported_store(tmp_path / "plain", formulas())
    safe = reported_store(tmp_path / "safe", formulas(), spreadsheet_safe=True)
    assert f"\n0,{FORMULA}" not in (safe / "alerts.csv").read_text()
    assert {row["site"][:2] for row in rows_of("csv", safe)} == {"'=", "'@", "'c"}
    assert [row["site"] for row in rows_of("csv", plain)] == [row["site"] for row in open_store(safe).alerts()]
    assert list(open_store(plain).alerts()) == list(open_store(safe).alerts())
    store_stub(safe, formulas(), resume=True, threshold=0.9, keep=open_store(safe).kept, spreadsheet_safe=True)
    with pytest.raises(RunError, match="other values of spreadsheet_safe"):
        store_stub(safe, formulas(), resume=True, threshold=0.9, keep=open_store(safe).kept)
