"""Intel lab: 52 sensors measuring temperature, humidity, light and voltage for three weeks, faults included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.lab.recordings.files import DataFile, Folder, locate, read_mat
from undertow.lab.recordings.recording import Recording

FILE = DataFile(
    name="intel_lab_sensor.mat",
    sha256="37a423fe8b93f8831c0270d78f178a5e7f1b121ab42492dcca886e9b503fe69d",
    citation="P. Bodik, W. Hong, C. Guestrin, S. Madden, M. Paskin, R. Thibaux, Intel Berkeley Research Lab data, 2004",
    origin="the Intel Berkeley lab data in steps of ten minutes, 52×4×2994",
)
QUANTITIES = ("temperature", "humidity", "light", "voltage")
SLICES_PER_DAY = 144
_POSSIBLE = np.array([(0.0, 50.0), (0.0, 100.0), (0.0, np.inf), (0.0, 5.0)])  # inside a heated laboratory


@dataclass(frozen=True, kw_only=True)
class SensorRecording(Recording):
    """The recording and its faults.

    impossible  True where the value cannot be true (temperature beyond 0 to 50 °C, humidity beyond 0 to 100 %),
                (T, 52, 4); sensors that ran out of battery say such things
    """

    impossible: NDArray[np.bool_]


def load(folder: Folder = None, standardise: bool = True) -> SensorRecording:
    """2994 slices of 52×4: sensor, quantity. Exact zeros are missing values.

    Degrees, per cent, lux and volts have nothing in common: with ``standardise`` each quantity has its median taken
    off and is divided by its interquartile range, both over the whole recording. The faults barely move these two.
    """
    values = np.moveaxis(read_mat(locate(FILE, folder), "T")["T"], -1, 0).astype(np.float64)
    values[values == 0] = np.nan
    impossible = (values < _POSSIBLE[:, 0]) | (values > _POSSIBLE[:, 1])
    if standardise:
        low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=(0, 1))
        values = (values - middle) / (high - low)
    return SensorRecording(
        values=values,
        citation=FILE.citation,
        labels={"quantity": QUANTITIES},
        period=SLICES_PER_DAY,
        impossible=impossible,
    )
