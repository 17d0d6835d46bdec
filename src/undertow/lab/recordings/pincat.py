"""PINCAT: a numerical phantom of cardiac MRI, a beating heart in a breathing chest."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_mat
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="pincat.mat",
    sha256="96421400b891a15b078a8aa37c51cba7a7029954e14cbd109af40edbfb60e8ad",
    citation="B. Sharif, Y. Bresler, Physiologically improved NCAT phantom (PINCAT) enables in-silico study of the "
    "effects of beat-to-beat variability on cardiac MR, ISMRM 2007",
    origin="the PINCAT phantom, 128×128×50",
)


def load(folder: Folder = None) -> Recording:
    """50 slices of 128×128."""
    film = read_mat(locate(FILE, folder), "X")["X"]
    return Recording(np.moveaxis(film, -1, 0).astype(np.float64), FILE.citation)
