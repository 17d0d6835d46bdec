"""Hangzhou metro: passengers entering 80 stations every ten minutes, 25 days."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="hangzhou_metro.npz",
    sha256="3eb9902b6ab7d6facbe7e2e4e5ec5307baab493061d2361021876ee00f7cb7a2",
    citation="Hangzhou metro passenger flow, January 2019, as in X. Chen, L. Sun, Bayesian temporal factorization for "
    "multidimensional time series prediction, IEEE TPAMI 44(9), 2022",
    origin="the Hangzhou metro data of the transdim collection, 2700×80",
)
SLICES_PER_DAY = 108


def load(folder: Folder = None) -> Recording:
    """2700 slices of 80 stations, counts."""
    passengers = read_npz(locate(FILE, folder), "X")["X"]
    return Recording(passengers.astype(np.float64), FILE.citation, period=SLICES_PER_DAY)
