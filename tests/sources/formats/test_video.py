"""Video files, and raw video in colour."""

import shutil

import numpy as np
import pytest

from undertow.sources import StreamError, open_stream


def test_video_frames_are_what_was_encoded(made):
    items = list(made("video").open().slices())
    assert len(items) == 15
    assert abs(float(np.median(items[0].values)) - 40) < 8
    assert [int(item.values.mean(axis=1).argmax()) for item in items] == list(range(15))
    colour = made("video_colour").open()
    assert colour.shape == (16, 16, 3)
    assert colour.labels[2] == ("red", "green", "blue")
    assert open_stream(made("video_colour").path).shape == (16, 16, 3)  # colours are kept where there are any
    assert open_stream(made("video_colour").path, colour=False).shape == (16, 16)
    assert open_stream(made("video").path).shape == (16, 16)
    first = next(iter(colour.slices())).values
    assert first[0, :, 0].mean() > first[0, :, 1].mean() + 50


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p"])
def test_raw_video_in_colour(pixels, tmp_path):
    av = pytest.importorskip("av")
    image = np.zeros((16, 32, 3), np.uint8)
    image[:, :16, 0] = 200
    frame = av.VideoFrame.from_ndarray(image, "rgb24").reformat(format=pixels)
    (tmp_path / "a.yuv").write_bytes(frame.to_ndarray().tobytes())
    stream = open_stream(tmp_path / "a.yuv", size=(32, 16), pixels=pixels, colour=True)
    (item,) = stream.slices()
    assert stream.shape == (16, 32, 3)
    assert abs(item.values[4, 4, 0] - 200) < 12
    assert item.values[4, 28].max() < 12


def test_playlists_do_not_lead_into_other_files(made, tmp_path):
    shutil.copy(made("video").path, tmp_path / "secret.mp4")
    (tmp_path / "a.mp4").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n")
    (tmp_path / "b.mkv").write_text("ffconcat version 1.0\nfile secret.mp4\n")
    for name in ("a.mp4", "b.mkv"):
        with pytest.raises(StreamError):
            list(open_stream(tmp_path / name).slices())
