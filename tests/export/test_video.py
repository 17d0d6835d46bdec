"""Video, read back by PyAV."""

import av
import numpy as np
import pytest
from stubs import StubStream, store_stub

from undertow.export import export
from undertow.export.video import grey_scale, masked, side_by_side
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import open_store


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
def test_video_shows_original_background_and_outliers(store, tmp_path, name):
    path = export(store, tmp_path / name, frames_per_second=10)
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert container.streams.video[0].average_rate == 10
    assert len(frames) == 12
    # 3 rows of 3 panels with 4 columns and 2 gaps of 2 columns, 80 times enlarged.
    assert frames[0].shape == (240, 16 * 80, 3)
    found = open_store(store)
    low, high = grey_scale(found, "data")
    wanted = np.clip((found.slice("mean", 11) - low) / (high - low) * 255, 0, 255)
    shown = frames[11][40::80, (6 * 80) + 40 : 10 * 80 : 80, 0]
    np.testing.assert_allclose(shown, wanted, atol=12)


def test_masks_are_white_where_a_pixel_is_flagged(tmp_path):
    store_stub(tmp_path / "s", StubStream(12), keep="outlier_probability")
    path = export(tmp_path / "s", tmp_path / "mask.mkv", variables=["mask"])
    flagged = open_store(tmp_path / "s").slice("outlier_probability", 11) >= 0.5
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    assert frames[0].shape == (4, 4)  # three rows, and one more to be even
    np.testing.assert_array_equal(frames[11][:3] > 128, flagged)
    coloured = np.zeros((3, 4, 3))
    coloured[1, 2, 0] = 0.9
    assert np.argwhere(masked(coloured, 0.5)[..., 0] == 255).tolist() == [[1, 2]]
    with pytest.raises(StoreError, match="--variables mask"):
        export(tmp_path / "s", tmp_path / "x.mp4", variables=["mean"])


def test_colours_and_volumes_make_pictures():
    colours = np.zeros((3, 2, 3))
    colours[..., 0] = 200
    picture = side_by_side({"mean": colours, "outliers": 0 * colours}, 0, 255)
    assert tuple(picture[0, 0]) == (200, 0, 0)
    volume = np.arange(4 * 5 * 2.0).reshape(4, 2, 5)
    assert side_by_side({"mean": volume, "outliers": 0 * volume}, 0, 255).shape == (240, 19 * 60, 3)


def test_pixels_keep_their_grey(tmp_path):
    class Pixels(StubStream):
        def slices(self, position=None):
            for item in super().slices(position):
                item.values[:] = np.arange(12).reshape(3, 4) * 20
                yield item

    store_stub(tmp_path / "s", Pixels(3), keep="data,mean,outliers")
    assert grey_scale(open_store(tmp_path / "s"), "data") == (0.0, 255.0)
