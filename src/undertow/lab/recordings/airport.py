"""Airport hall: a grey surveillance video, 100 frames of people crossing a hall."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_mat
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="airport_hall.mat",
    sha256="83eb967aedf7b94f70d6b3b5a93d46e9355ae4d633851d57440a5614c2ef45a8",
    citation="L. Li, W. Huang, I. Y.-H. Gu, Q. Tian, Statistical modeling of complex backgrounds for foreground "
    "object detection, IEEE Transactions on Image Processing 13(11), 2004",
    origin="the I2R data set, sequence Airport Hall, as released with OLSTEC",
)


def load(folder: Folder = None) -> Recording:
    """100 slices of 144×176, brightness 0 to 255."""
    video = read_mat(locate(FILE, folder), "x")["x"]
    return Recording(np.moveaxis(video, -1, 0).astype(np.float64), FILE.citation)
