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
