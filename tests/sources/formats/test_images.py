"""Folders of images."""

import struct

import numpy as np
import pytest
from stream_files import numbers

from undertow.sources import StreamError, open_stream


def test_images_are_sorted_by_number_and_named_by_file(made):
    assert [item.time for item in made("images").open().slices()] == [f"frame{t}" for t in range(6, 13)]


def test_an_image_that_claims_to_be_huge_is_refused(tmp_path):
    from PIL import Image

    Image.fromarray(numbers()[0].astype(np.uint8)).save(tmp_path / "1.png")
    content = bytearray((tmp_path / "1.png").read_bytes())
    content[16:24] = struct.pack(">II", 2**30, 2**30)
    (tmp_path / "1.png").write_bytes(content)
    with pytest.raises(StreamError):
        open_stream(tmp_path)


def test_a_pipe_among_the_images_is_passed_over(tmp_path):
    import os

    for number in (1, 3):
        np.save(tmp_path / f"{number}.npy", np.full((2, 2), float(number)))
    os.mkfifo(tmp_path / "2.png")
    stream = open_stream(tmp_path)
    assert [item.time for item in stream.slices()] == ["1", "3"]
    assert any("2.png" in notice for notice in stream.notices)


def test_an_unreadable_image_ends_the_stream_or_is_left_out(tmp_path):
    for number in (1, 3):
        np.save(tmp_path / f"{number}.npy", np.full((2, 2), float(number)))
    (tmp_path / "2.png").write_bytes(b"no image")
    with pytest.raises(StreamError, match=r"2.png could not be read.*on_bad='skip'"):
        list(open_stream(tmp_path).slices())
    stream = open_stream(tmp_path, on_bad="skip")
    assert [item.time for item in stream.slices()] == ["1", "3"]
    assert any(notice.startswith("1 slice of") for notice in stream.notices)
