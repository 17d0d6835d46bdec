"""Chicago taxi: trips between 77 areas of the city, by the hour; nearly all pairs have none."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="chicago_taxi.npz",
    sha256="1171044e6fedbfa44e50dc3e4fb140ae9ae3b75b1c9596500da6ed7fc49075d3",
    citation="D. Lee, K. Shin, Robust factorization of real-world tensor streams with patterns, missing values, and "
    "outliers, ICDE 2021",
    origin="the Chicago taxi data released with SOFIA, 2905×77×77",
)
SLICES_PER_DAY = 24


def load(folder: Folder = None) -> Recording:
    """2905 slices of 77×77, counts, 97.5 % of them zero: an hour without a trip is known, not missing."""
    trips = read_npz(locate(FILE, folder), "X")["X"]
    return Recording(trips.astype(np.float64), FILE.citation, period=SLICES_PER_DAY)
