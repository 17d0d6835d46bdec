"""Lobby: a grey surveillance video with switched lights, and the true foreground of some of its frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.lab.recordings.airport import FILE as AIRPORT
from undertow.lab.recordings.files import DataFile, Folder, locate, read_npz
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="i2r_lobby.npz",
    sha256="b0881b28db6166fc043cf706b1593056011943b35b4f9d49b053ee1d0080ec3b",
    citation=AIRPORT.citation,
    origin="the I2R data set, sequence Lobby, with its hand-drawn foreground masks",
)


@dataclass(frozen=True, kw_only=True)
class Lobby(Recording):
    """The video and its truth.

    foreground_frames  numbers (from 0) of the frames with a truth, (14,)
    foreground         True where a person is, (14, 128, 160)
    """

    foreground_frames: NDArray[np.int64]
    foreground: NDArray[np.bool_]


def load(folder: Folder = None) -> Lobby:
    """356 slices of 128×160, brightness 0 to 255."""
    held = read_npz(locate(FILE, folder), "frames", "gt_index", "gt_masks")
    return Lobby(
        values=held["frames"].astype(np.float64),
        citation=FILE.citation,
        foreground_frames=held["gt_index"].astype(np.int64),
        foreground=held["gt_masks"].astype(np.bool_),
    )
