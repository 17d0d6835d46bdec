"""Resuming compares what was read before: other data is refused, and what was not compared is said."""

import io
import json
import sys

import numpy as np
import pytest
from stream_files import LENGTH, SOURCES, TABLE, TARGETS, arrow_slices, csv_text, json_lines, numbers

from undertow.sources import StreamError, open_stream

LABELS = {"src": SOURCES, "dst": TARGETS}
SMALL = {"time": "t", "modes": "a", "value": "x"}


def send(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))


def arrow_bytes(seed=0, rows=3):
    import pyarrow as pa

    table = arrow_slices()
    if seed:
        table = table.set_column(table.column_names.index("values"), "values", pa.array(numbers(seed).tolist()))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


PIPES = {
    "json": (lambda: json_lines().encode(), lambda: json_lines().replace("[[", "[[1", 1).encode(), {}),
    "arrow": (arrow_bytes, lambda: arrow_bytes(seed=1), {}),
    "csv": (
        lambda: csv_text().encode(),
        lambda: csv_text().replace(",s0,0,", ",s0,0,1", 1).encode(),
        TABLE | {"labels": LABELS, "format": "csv"},
    ),
}


@pytest.mark.parametrize("case", PIPES)
def test_a_pipe_with_other_data_is_refused_at_its_first_slice(case, monkeypatch):
    same, other, options = PIPES[case]
    send(monkeypatch, same())
    positions = [item.position for item in open_stream("-", **options).slices()]
    send(monkeypatch, other())
    with pytest.raises(StreamError, match=r"brings other data .* --new-data"):
        next(open_stream("-", **options).slices(positions[3]))
    send(monkeypatch, same())
    assert len(list(open_stream("-", **options).slices(positions[3]))) == LENGTH - 4


@pytest.mark.parametrize("case", PIPES)
def test_a_pipe_of_nothing_but_new_data(case, monkeypatch):
    same, other, options = PIPES[case]
    send(monkeypatch, same())
    *_, last = open_stream("-", **options).slices()
    send(monkeypatch, other())
    stream = open_stream("-", **options)
    assert len(list(stream.slices(stream.restarted(last.position)))) == LENGTH


def test_arrow_may_arrive_in_other_batches(monkeypatch):
    send(monkeypatch, arrow_bytes(rows=3))
    positions = [item.position for item in open_stream("-").slices()]
    for rows in (1, 2, 7):
        send(monkeypatch, arrow_bytes(rows=rows))
        rest = list(open_stream("-").slices(positions[3]))
        np.testing.assert_array_equal([item.values for item in rest], numbers()[4:])


def test_only_pipes_restart(tmp_path):
    (tmp_path / "a.jsonl").write_text(json_lines())
    stream = open_stream(tmp_path / "a.jsonl")
    *_, last = stream.slices()
    with pytest.raises(StreamError, match="is no pipe"):
        stream.restarted(last.position)


@pytest.mark.parametrize("rows_in_order", [True, False])
def test_a_table_whose_earlier_rows_changed_is_refused(tmp_path, rows_in_order):
    path, rows = tmp_path / "a.csv", ["0,p,1", "0,q,2", "1,p,3", "1,q,4", "2,p,5"]
    ordered = rows if rows_in_order else [rows[2], rows[0], rows[1], *rows[3:]]
    path.write_text("\n".join(["t,a,x", *ordered]) + "\n")
    positions = [item.position for item in open_stream(path, **SMALL).slices()]
    path.write_text("\n".join(["t,a,x", *ordered, "3,p,6"]) + "\n")
    assert [item.time for item in open_stream(path, **SMALL).slices(positions[1])] == [2, 3]
    path.write_text("\n".join(["t,a,x", *ordered]).replace("0,q,2", "0,q,7") + "\n")
    with pytest.raises(StreamError, match=r"holds other values than before"):
        list(open_stream(path, **SMALL).slices(positions[1]))


def test_json_lines_whose_earlier_part_changed_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("[1, 2]\n[3, 4]\n[5, 6]\n")
    positions = [item.position for item in open_stream(path).slices()]
    path.write_text("[1, 2]\n[3, 9]\n[5, 6]\n")
    with pytest.raises(StreamError, match="holds other values than before"):
        list(open_stream(path).slices(positions[1]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_positions_of_earlier_versions_are_resumed_with_a_notice(tmp_path, name):
    path, options = tmp_path / name, {} if name == "a.jsonl" else TABLE
    path.write_text(json_lines() if name == "a.jsonl" else csv_text())
    position = list(open_stream(path, **options).slices())[3].position
    old = {key: value for key, value in position["source"].items() if key in ("offset", "place", "skip")}
    stream = open_stream(path, **options)
    rest = list(stream.slices(json.loads(json.dumps(position | {"source": old}))))
    np.testing.assert_array_equal([item.values for item in rest], numbers()[4:])
    assert any("could not be compared" in notice for notice in stream.notices)
