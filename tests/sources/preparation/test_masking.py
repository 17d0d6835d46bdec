"""Masks from arrays, files and images."""

import numpy as np
import pytest
from stream_files import LENGTH, SHAPE, numbers, values

from undertow.sources import StreamError, open_stream


def test_masks_of_every_type(tmp_path):
    from PIL import Image

    still = np.random.default_rng(0).random(SHAPE) < 0.5
    moving = np.random.default_rng(1).random((LENGTH, *SHAPE)) < 0.5
    np.save(tmp_path / "still.npy", still)
    np.save(tmp_path / "moving.npy", moving)
    Image.fromarray(still.astype(np.uint8) * 255).save(tmp_path / "still.png")
    for mask in (still, tmp_path / "still.npy", str(tmp_path / "still.png")):
        made = values(open_stream(numbers(), mask=mask))
        np.testing.assert_array_equal(np.isnan(made), np.broadcast_to(~still, made.shape))
    for mask in (moving, tmp_path / "moving.npy"):
        made = values(open_stream(numbers(), mask=mask))
        np.testing.assert_array_equal(np.isnan(made), ~moving)
    part = values(open_stream(numbers(), mask=moving, select={"time": "2:4", 0: "1:3"}))
    np.testing.assert_array_equal(np.isnan(part), ~moving[2:4, 1:3])


@pytest.mark.parametrize("mask", [np.ones((2, 2)), np.ones((3, *SHAPE)), "nowhere.npy", np.array(["a"])])
def test_bad_masks_are_refused(mask):
    with pytest.raises(StreamError):
        list(open_stream(numbers(), mask=mask).slices())
