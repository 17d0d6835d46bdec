"""Sunnybrook cine: real short-axis cardiac MRI, five cross sections of one heart through one beat."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="sunnybrook_cine.npz",
    sha256="9e08118b8d1863a107d3fac916e900ede6c1c7cc6cb039d6ceabd8b101312a8b",
    citation="P. Radau, Y. Lu, K. Connelly, G. Paul, A. J. Dick, G. A. Wright, Evaluation framework for algorithms "
    "segmenting short axis cardiac MRI, MIDAS Journal 2009",
    origin="the Sunnybrook cardiac data, one patient cropped to 150×150×5, 20 phases",
)


def load(folder: Folder = None, beats: int = 1) -> Recording:
    """20 slices of 150×150×5 a beat; the beat is periodic and may be repeated."""
    if beats < 1:
        raise ValueError(f"beats must be at least 1, got {beats}: the recording is one beat and may be repeated")
    volumes = read_npz(locate(FILE, folder), "volumes")["volumes"].astype(np.float64)
    return Recording(np.concatenate([volumes] * beats), FILE.citation, period=len(volumes))
