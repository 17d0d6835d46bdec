import io
import os
import struct

import numpy as np
import pytest

from undertow.serialization import container as checkpoint
from undertow.serialization.container import CheckpointError, read, write

HEADER = {"kind": "test", "shape": [2, 3], "seed": 7, "nested": {"µ": 0.95, "none": None}}
ARRAYS = {
    "file": np.arange(6.0).reshape(2, 3),  # a name that numpy.savez itself cannot take
    "scalar": np.array(3, dtype=np.int32),
    "empty": np.empty((0, 4), dtype=np.float32),
    "mask": np.array([True, False]),
    "special": np.array([np.nan, np.inf, -0.0]),
    "fortran": np.asfortranarray(np.arange(12).reshape(3, 4)),
}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "state.ckpt"
    write(path, HEADER, ARRAYS)
    return path


def test_round_trip_is_exact(saved):
    header, arrays = read(saved)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert array.tobytes() == ARRAYS[name].tobytes()


def test_arrays_that_numpy_wrote_are_read_and_belong_to_the_reader(tmp_path, monkeypatch):
    """As files of earlier versions hold them: by columns, text, dates."""
    given = {
        "columns": np.asfortranarray(np.arange(12).reshape(3, 4)),
        "text": np.array(["ä", "two"]),
        "dates": np.array(["2024-05-01T00:00", "NaT"], "M8[s]"),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    monkeypatch.setattr(checkpoint, "_pack", lambda arrays: buffer.getvalue())
    write(tmp_path / "state.ckpt", {}, {})
    _, arrays = read(tmp_path / "state.ckpt")
    for name in given:
        np.testing.assert_array_equal(arrays[name], given[name])
        assert arrays[name].dtype == given[name].dtype
        assert arrays[name].flags.writeable


def test_same_content_same_bytes_and_nothing_left_behind(saved, tmp_path):
    write(tmp_path / "again.ckpt", HEADER, ARRAYS)
    assert (tmp_path / "again.ckpt").read_bytes() == saved.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.ckpt", "state.ckpt"]


def test_nothing_at_all_can_be_saved(tmp_path):
    write(str(tmp_path / "bare"), {}, {})
    assert read(str(tmp_path / "bare")) == ({}, {})


def test_every_truncation_is_noticed(saved, tried):
    content = saved.read_bytes()
    lengths = [*range(0, 120), *range(120, len(content), 37), len(content) - 1]
    for length in lengths:
        saved.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            read(saved)
    saved.write_bytes(content + b"\0")
    with pytest.raises(CheckpointError, match="damaged"):
        read(saved)
    tried("damaged checkpoint, noticed", len(lengths) + 1)


def test_every_flipped_bit_is_noticed(saved, tried):
    content = saved.read_bytes()
    positions = [*range(0, 80), *range(80, len(content), 23), *range(len(content) - 32, len(content))]
    for position in positions:
        spoilt = bytearray(content)
        spoilt[position] ^= 1 << (position % 8)
        saved.write_bytes(bytes(spoilt))
        with pytest.raises(CheckpointError) as caught:
            read(saved)
        assert "\n" not in str(caught.value)
    tried("damaged checkpoint, noticed", len(positions))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"\x93NUMPY", b"undertow", b"{}"])
def test_other_files_are_named_as_such(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not an Undertow checkpoint"):
        read(path)


def test_newer_format_asks_for_an_upgrade(saved):
    content = bytearray(saved.read_bytes())
    content[8:12] = struct.pack("<I", checkpoint.FORMAT_VERSION + 1)
    saved.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="format version 2, this Undertow reads up to 1: upgrade"):
        read(saved)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        read(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(CheckpointError, match="got the directory"):
        write(tmp_path, HEADER, ARRAYS)
    with pytest.raises(CheckpointError, match="could not be written"):
        write(tmp_path / "no" / "such" / "place", HEADER, ARRAYS)


def test_absurd_lengths_are_refused(saved):
    content = bytearray(saved.read_bytes())
    content[12:20] = struct.pack("<Q", 2**63)
    saved.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="damaged"):
        read(saved)


def test_objects_are_never_pickled(tmp_path):
    for array in (np.array([object()]), np.array([(1, 2)], dtype=[("a", int), ("b", object)])):
        with pytest.raises(CheckpointError, match="must hold numbers"):
            write(tmp_path / "x", {}, {"bad": array})
    for header in ({"bad": object()}, {"bad": float("nan")}):
        with pytest.raises(CheckpointError, match="plain JSON"):
            write(tmp_path / "x", header, {})
    assert list(tmp_path.iterdir()) == []


def test_pickled_payload_with_valid_digest_is_refused(tmp_path, monkeypatch):
    """Somebody who can compute a digest still cannot make us unpickle."""
    monkeypatch.setattr(checkpoint, "_pack", lambda arrays: _pickled_archive())
    write(tmp_path / "evil", {}, {})
    with pytest.raises(CheckpointError, match="damaged"):
        read(tmp_path / "evil")


def test_decompression_bomb_with_valid_digest_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_pack", lambda arrays: _bomb())
    write(tmp_path / "bomb", {}, {})
    with pytest.raises(CheckpointError, match="damaged"):
        read(tmp_path / "bomb")


def _pickled_archive():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{"x": 1}], dtype=object))
    return buffer.getvalue()


def _bomb():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.zeros(10**6))
    return buffer.getvalue()


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_crash_while_writing_leaves_the_old_file(saved, monkeypatch, step, failure):
    before = saved.read_bytes()

    def fail(*args):
        raise failure

    monkeypatch.setattr(os, step, fail)
    expected = CheckpointError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write(saved, {"new": True}, {})
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_symbolic_link_is_written_through(saved, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(saved)
    write(link, {"new": True}, {})
    assert link.is_symlink()
    assert read(saved)[0] == {"new": True}
