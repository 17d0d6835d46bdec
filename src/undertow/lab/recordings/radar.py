"""Radar traffic: vehicles counted by radars at 17 places in up to five directions, by the hour; two thirds missing."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="radar_traffic.npz",
    sha256="8e04ebb43fedbcb179bb2aa4b8a55caeab0b84dca55374a576514db27546b9ba",
    citation="D. Ahn, S. Kim, U Kang, Accurate online tensor factorization for temporal tensor streams with missing "
    "values, CIKM 2021",
    origin="the radar traffic data released with STF, 6419×17×5",
)
SLICES_PER_DAY = 24


def load(folder: Folder = None) -> Recording:
    """6419 slices of 17×5: place, direction. Most places have two directions; the others are never measured."""
    counts = read_npz(locate(FILE, folder), "X")["X"]
    return Recording(counts.astype(np.float64), FILE.citation, period=SLICES_PER_DAY)
