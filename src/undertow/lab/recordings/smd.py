"""SMD machine 2-2: 38 metrics of one server every minute, with labelled faults."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="smd_machine_2_2.npz",
    sha256="967c741ccdbd0e0d92a6b2c6842fc7901b6812635d81754aa8b9e692f0b89556",
    citation="Y. Su, Y. Zhao, C. Niu, R. Liu, W. Sun, D. Pei, Robust anomaly detection for multivariate time series "
    "through stochastic recurrent neural network, KDD 2019",
    origin="machine 2-2 of the server machine dataset, as in the TSB-AD-M collection",
)


@dataclass(frozen=True, kw_only=True)
class ServerRecording(Recording):
    """The recording, what came before it, and its faults.

    Attributes:
        train: the minutes before it, without labels, (4000, 38).
        faulty: True during a labelled fault, (23700,).
    """

    train: NDArray[np.float64]
    faulty: NDArray[np.bool_]


def load(folder: Folder = None) -> ServerRecording:
    """23700 slices of 38 metrics, each between 0 and 1."""
    held = read_npz(locate(FILE, folder), "train", "test", "label")
    return ServerRecording(
        values=held["test"].astype(np.float64),
        citation=FILE.citation,
        train=held["train"].astype(np.float64),
        faulty=held["label"].astype(np.bool_),
    )
