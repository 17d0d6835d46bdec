"""Generated streams in which something happens: new factors, a changing rank, a first spike."""

from __future__ import annotations

import numpy as np

from undertow.lab.cases.case import Condition, Data, Floats, Size
from undertow.lab.recordings.files import Folder

CHANGE_AT = 50
"""Slice with the first of the new factors."""
RANKS, SLICES_PER_RANK = (3, 6, 2), 60
SPIKE_AT = 30
"""Slice with the first entries that are off."""


def new_factors(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
    """40×40 of rank 5 with entirely new factors from slice 50 on; noise 0.1, outliers ±10."""
    draw = np.random.default_rng(seed)
    factors = [(draw.normal(size=(40, 5)), draw.normal(size=(40, 5))) for _ in range(2)]
    truths, shown, corrupted = [], [], []
    for t in range(size.slices):
        left, right = factors[t >= CHANGE_AT]
        truth = (left * draw.normal(size=5)) @ right.T / 2
        outliers = (draw.random(truth.shape) < condition.outliers) * draw.choice([-10, 10], truth.shape)
        values = truth + 0.1 * draw.normal(size=truth.shape) + outliers
        truths.append(truth)
        shown.append(np.where(draw.random(truth.shape) < condition.observed, values, np.nan))
        corrupted.append(outliers != 0)
    return _data(truths, shown, np.stack(corrupted), size)


def changing_rank(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
    """50×50 without drift, noise 0.1; the rank goes 3 → 6 → 2, sixty slices each."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(50, max(RANKS))), draw.normal(size=(50, max(RANKS)))
    truths, shown = [], []
    for t in range(size.slices):
        rank = RANKS[t // SLICES_PER_RANK]
        truth = (left[:, :rank] * draw.normal(size=rank)) @ right[:, :rank].T
        values = truth + 0.1 * draw.normal(size=truth.shape)
        truths.append(truth)
        shown.append(np.where(draw.random(truth.shape) < condition.observed, values, np.nan))
    return _data(truths, shown, None, size)


def first_spike(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
    """A clean 20×12 stream of rank 3, noise 0.05; in the last slice, for the first time, some entries are off.

    `condition.outliers` is the fraction of the 240 entries that are off, `condition.magnitude` by how much.
    """
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(20, 3)), draw.normal(size=(12, 3))
    truths, shown = [], []
    corrupted = np.zeros((size.slices, 20, 12), bool)
    for t in range(size.slices):
        truth = (left * draw.normal(size=3)) @ right.T
        missing = draw.random(truth.shape) < round(1 - condition.observed, 12)
        values = np.where(missing, np.nan, truth + 0.05 * draw.normal(size=truth.shape))
        if t == SPIKE_AT:
            count = round(condition.outliers * truth.size)
            corrupted[t].flat[draw.permutation(np.flatnonzero(~np.isnan(values)))[:count]] = True
        truths.append(truth)
        shown.append(values + (condition.magnitude or 0.0) * corrupted[t])
    return _data(truths, shown, corrupted, size)


def _data(truths: list[Floats], shown: list[Floats], corrupted: np.ndarray | None, size: Size) -> Data:
    truth = np.stack(truths)
    return Data(np.stack(shown), truth, truth, corrupted, size.burn_in, known_truth=True)
