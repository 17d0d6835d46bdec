"""Abilene: traffic between the 11 nodes of a research network, one matrix every five minutes for a week."""

from __future__ import annotations

import numpy as np

from undertow.lab.recordings.files import DataFile, Folder, locate, read_mat
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="abilene_sand.mat",
    sha256="f0a197d442a1e1fa63e63cb31fbf47d070f61205cc2a2f3eb3cbb86358ca9c84",
    citation="A. Lakhina, K. Papagiannaki, M. Crovella, C. Diot, E. D. Kolaczyk, N. Taft, Structural analysis of "
    "network traffic flows, SIGMETRICS 2004",
    origin="the Abilene origin-destination matrices of the week from 2003-12-22",
)
NODES, SLICES_PER_DAY = 11, 288


def load(folder: Folder = None) -> Recording:
    """2016 slices of 11×11, bytes in five minutes: to node, from node."""
    held = read_mat(locate(FILE, folder), "X", "odnames")
    # A row of X is one matrix with its first index running fastest; so are the names, "FROM-TO", "TO" running fastest.
    values = held["X"].astype(np.float64).reshape(-1, NODES, NODES).transpose(0, 2, 1)
    pairs = np.array([str(name[0][0]) for name in held["odnames"]]).reshape(NODES, NODES).T
    return Recording(
        np.ascontiguousarray(values), FILE.citation, {"pair": tuple(map(str, pairs.ravel()))}, SLICES_PER_DAY
    )
