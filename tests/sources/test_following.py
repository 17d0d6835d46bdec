"""Files and folders that still grow: what is appended arrives, and there is an end to the waiting."""

import threading

import numpy as np
import pytest
from stream_files import COLUMNS, LENGTH, ROWS, SOURCES, TABLE, TARGETS, csv_text, json_lines, labelled, numbers

from undertow.sources import StreamError, open_stream

pytestmark = pytest.mark.slow  # each waits until nothing more comes

QUICK = {"follow": True, "idle": 0.4, "poll": 0.01}


def follow(path, grow, begin=3, **options):
    """Take ``begin`` slices, let the rest be written, take what comes until nothing more does."""
    stream = open_stream(path, **QUICK, **options)
    slices = stream.slices()
    items = [next(slices) for _ in range(begin)]
    writer = threading.Thread(target=grow)
    writer.start()
    items += list(slices)
    writer.join()
    return items


def check(items):
    assert len(items) == LENGTH
    np.testing.assert_array_equal([item.values for item in items], numbers())


def append(path, pieces, pause=0.03):
    waiting = threading.Event()
    with path.open("ab") as file:
        for piece in pieces:
            file.write(piece)
            file.flush()
            waiting.wait(pause)


def test_json_lines_grow_by_parts_of_lines(tmp_path):
    path, lines = tmp_path / "a.jsonl", [line.encode() for line in json_lines().splitlines(keepends=True)]
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    rest = lines[3][20:] + b"".join(lines[4:])
    check(follow(path, lambda: append(path, [rest[i : i + 97] for i in range(0, len(rest), 97)], 0.001)))


def test_a_table_grows(tmp_path):
    path, text = tmp_path / "a.csv", csv_text().encode()
    cut = len(text) // 2 + 7
    path.write_bytes(text[:cut])
    rest = [text[i : i + 500] for i in range(cut, len(text), 500)]
    items = follow(path, lambda: append(path, rest), **TABLE, labels={"src": SOURCES, "dst": TARGETS})
    check([*items, *open_stream(path, **TABLE).slices(items[-1].position)])  # no longer followed: complete


def test_a_table_that_does_not_exist_yet_but_for_its_name(tmp_path):
    path = tmp_path / "a.csv"
    path.touch()
    writer = threading.Thread(target=lambda: append(path, [csv_text().encode()]))
    writer.start()
    stream = open_stream(path, **QUICK, **TABLE, labels={"src": SOURCES, "dst": TARGETS})
    items = list(stream.slices())
    writer.join()
    check([*items, *open_stream(path, **TABLE).slices(items[-1].position)])


def test_raw_video_grows(tmp_path):
    path, frames = tmp_path / "a.gray", numbers().astype(np.uint8)
    path.write_bytes(frames[:3].tobytes() + b"half")
    rest = frames[3:].tobytes()[4:]

    def grow():
        with path.open("r+b") as file:
            file.seek(frames[:3].nbytes)
            file.write(frames[3:].tobytes()[:4])
        append(path, [rest[i : i + 11] for i in range(0, len(rest), 11)], 0.001)

    check(follow(path, grow, size=(COLUMNS, ROWS)))


def test_a_folder_grows(tmp_path):
    from PIL import Image

    def save(which):
        for t in which:
            Image.fromarray(numbers()[t].astype(np.uint8)).save(tmp_path / f"{t + 8}.png")

    save(range(3))
    (tmp_path / "11.png").write_bytes(b"")  # begun, not finished
    check(follow(tmp_path, lambda: save(range(3, LENGTH))))


def test_an_array_grows_with_its_header(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, numbers()[:3])

    def grow():
        np.save(tmp_path / "longer.npy", numbers())
        (tmp_path / "longer.npy").rename(path)

    check(follow(path, grow))


def test_a_zarr_store_grows(tmp_path):
    data = labelled().to_dataset().drop_vars("src")
    path = tmp_path / "a.zarr"
    encoding = {"time": {"units": "minutes since 2024-05-01", "dtype": "int64"}}
    data.isel(time=slice(0, 3)).to_zarr(path, encoding=encoding, consolidated=False)
    check(follow(path, lambda: data.isel(time=slice(3, None)).to_zarr(path, append_dim="time", consolidated=False)))


def test_close_ends_the_waiting(tmp_path):
    (tmp_path / "a.jsonl").write_text(json_lines())
    stream = open_stream(tmp_path / "a.jsonl", follow=True, poll=0.01)
    slices = stream.slices()
    for _ in range(LENGTH):
        next(slices)
    stopper = threading.Timer(0.1, stream.close)
    stopper.start()
    assert list(slices) == []  # would wait for ever


def test_ctrl_c_ends_the_waiting(tmp_path):
    import signal
    import subprocess
    import sys

    (tmp_path / "a.jsonl").write_text(json_lines())
    program = (
        "import signal, sys, undertow as ut\n"
        # A shell that starts its jobs in the background has them ignore Ctrl-C, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    for item in ut.open_stream(sys.argv[1], follow=True).slices(): print('slice', flush=True)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(LENGTH):
            assert process.stdout.readline() == "slice\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
        assert process.returncode == 0


def test_a_followed_file_that_shrinks_is_one_sentence(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json_lines())
    slices = open_stream(path, **QUICK).slices()
    for _ in range(LENGTH):
        next(slices)
    path.write_text("")
    with pytest.raises(StreamError, match="became shorter"):
        next(slices)


def test_what_cannot_grow_cannot_be_followed(made):
    for name in ("npz", "mat5", "netcdf", "parquet", "video", "nifti", "dicom", "csv_compressed"):
        with pytest.raises(StreamError):
            open_stream(made(name).path, **made(name).options, follow=True)
