"""Standard input: JSON lines, Arrow IPC and CSV; read once, as it comes."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from stream_files import LENGTH, SOURCES, TABLE, TARGETS, arrow_slices, arrow_table, csv_text, json_lines, numbers

from undertow.sources import StreamError, open_stream
from undertow.sources.formats import lines

LABELS = {"src": SOURCES, "dst": TARGETS}


@pytest.fixture
def pipe(monkeypatch):
    def fill(content):
        standard = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", standard)

    return fill


def arrow_bytes(table, rows):
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def json_rows():
    table = arrow_table().to_pylist()
    return "".join(json.dumps(row | {"t": row["t"].isoformat()}) + "\n" for row in table).encode()


CASES = {
    "json": (lambda: json_lines().encode(), {}),
    "json rows": (json_rows, TABLE | {"labels": LABELS}),
    "arrow": (lambda: arrow_bytes(arrow_slices(), 3), {}),
    "arrow rows": (lambda: arrow_bytes(arrow_table(), 50), TABLE | {"labels": LABELS}),
    "csv": (lambda: csv_text().encode(), TABLE | {"labels": LABELS, "format": "csv"}),
}


def test_csv_in_a_pipe_has_to_be_named(pipe):
    pipe(csv_text().encode())
    with pytest.raises(StreamError, match=r"is not JSON.*: mend it, or say what it is with --format, for example csv"):
        list(open_stream("-", **TABLE, labels=LABELS).slices())


@pytest.mark.parametrize("case", CASES)
def test_slices_from_a_pipe_and_again_from_every_position(case, pipe):
    content, options = CASES[case]
    pipe(content())
    stream = open_stream("-", **options)
    assert stream.length is None
    items = list(stream.slices())
    np.testing.assert_array_equal([item.values for item in items], numbers())
    assert isinstance(items[0].time, np.datetime64)
    for done, item in enumerate(items, start=1):
        pipe(content())
        again = open_stream("-", **options)
        assert again.fingerprint == stream.fingerprint
        rest = list(again.slices(item.position))
        assert len(rest) == LENGTH - done
        assert all(np.array_equal(then.values, x) for then, x in zip(rest, numbers()[done:], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["json", "json rows", "csv"])
def test_a_pipe_may_arrive_in_other_blocks_the_second_time(case, pipe, monkeypatch):
    content, options = CASES[case]
    monkeypatch.setattr(lines, "BLOCK_BYTES", 350)
    pipe(content())
    items = list(open_stream("-", **options).slices())
    np.testing.assert_array_equal([item.values for item in items], numbers())
    for size in (90, 1100, 5000):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        for done, item in enumerate(items, start=1):
            pipe(content())
            rest = list(open_stream("-", **options).slices(item.position))
            assert [then.time for then in rest] == [then.time for then in items[done:]]
            assert all(np.array_equal(then.values, x) for then, x in zip(rest, numbers()[done:], strict=True))


def test_tables_in_pipes_need_their_labels(pipe):
    for content, options in CASES.values():
        if "labels" in options:
            pipe(content())
            with pytest.raises(StreamError, match="give the labels of src"):
                open_stream("-", **{key: value for key, value in options.items() if key != "labels"})


def test_bare_lists_null_and_numbers_for_times(pipe):
    pipe(b'[[1, null], [3, 4]]\n\n{"values": [[NaN, 1], [2, 3]], "time": 7}\n')
    first, second = open_stream("-").slices()
    assert np.isnan(first.values[0, 1])
    assert first.time is None
    assert second.time == 7


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello\n",
        b"[[1, 2], [3]]\n",
        b'{"a": 1}\n',
        b"7\n",
        b"[]\n",
        b'["a"]\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xff\xff\xff\x10\x00",
        b"\x00" * 50,
        b"[1, 2]\n[1, 2, 3]\n",
        b'{"time": {}, "values": [1e999]}\n[1e999' + b"9" * 5000 + b"]\n" + b"[" + b"9" * 5000 + b"]\n",
    ],
)
def test_invalid_content_of_a_pipe_is_one_sentence(content, pipe):
    pipe(content)
    with pytest.raises(StreamError) as caught:
        list(open_stream("-").slices())
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_pipe_that_ends_before_the_position_to_resume_from(pipe):
    pipe(json_lines().encode())
    last = list(open_stream("-").slices())[-1]
    pipe(json_lines().encode()[: len(json_lines()) // 2].rsplit(b"\n", 1)[0])
    with pytest.raises(StreamError, match=r"send the same data again from its beginning.*new_data"):
        list(open_stream("-").slices(last.position))


def test_other_formats_do_not_come_through_a_pipe(pipe):
    pipe(b"x")
    with pytest.raises(StreamError, match="save it to a file"):
        open_stream("-", format="npy")
    with pytest.raises(StreamError, match="needs no follow"):
        open_stream("-", follow=True)


def test_nothing_is_piped(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StreamError, match="pipe something into it"):
        open_stream("-")


def test_a_slice_arrives_before_the_next_one_is_sent():
    program = (
        "import undertow as ut\nfor item in ut.open_stream('-').slices(): print(int(item.values.sum()), flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in (3, 4):
            process.stdin.write(b"[1, %d]\n" % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"%d\n" % (number + 1)  # hangs if slices were held back
        process.stdin.close()
        assert process.wait() == 0


def test_named_pipes_are_pipes(tmp_path):
    import threading

    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(json_lines()))
    writer.start()
    items = list(open_stream(tmp_path / "pipe").slices())
    writer.join()
    np.testing.assert_array_equal([item.values for item in items], numbers())


@pytest.mark.parametrize("name", ["a.h5", "a.mat", "a.npy", "a.nc", "a.parquet", "a.mp4"])
def test_named_pipes_of_formats_that_need_a_file_are_refused_before_somebody_is_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(StreamError, match=rf"{name} is a pipe and must be of format jsonl, arrow or csv, got '\w+'"):
        open_stream(tmp_path / name)
