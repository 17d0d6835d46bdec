"""Low-rank streams whose temporal rows follow from the rows before: AR(1), and season and trend."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from undertow.lab.synthetic.ingredients import Draws, Floats, SyntheticStream, assemble, draw_mask, scale


def autoregressive(
    shape: tuple[int, int] = (20, 20),
    rank: int = 3,
    *,
    slices: int = 200,
    memory: float = 0.95,
    noise_std: float = 0.05,
    observed: float = 0.5,
    seed: int = 0,
) -> SyntheticStream:
    """Fixed normal factors, rows c_t = memory · c_{t−1} + √(1 − memory²) · N(0, I), mean |L| = 1, and noise.

    Whoever carries a slice on to the next is wrong by √(2 (1 − memory)) of its size: 0.32 at 0.95.

    Args:
        shape: of a slice.
        rank: components.
        slices: how many.
        memory: of the temporal rows, 0 to 1.
        noise_std: standard deviation of the noise.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)
    rows = np.empty((slices, rank))
    row = draws.temporal.standard_normal(rank)
    for t in range(slices):
        rows[t] = row
        row = memory * row + math.sqrt(1 - memory**2) * draws.temporal.standard_normal(rank)
    return _stream(rows, shape, draws.factors.standard_normal, noise_std, observed, draws)


def seasonal(
    shape: tuple[int, int] = (20, 20),
    *,
    slices: int = 200,
    period: int = 24,
    noise_std: float = 0.05,
    observed: float = 0.5,
    seed: int = 0,
) -> SyntheticStream:
    """Three positive components: one that grows by half over the stream, two with a season, out of phase; and noise.

    c_t = (1 + t/2T, 1 + sin(2πt/period), 1 + cos(2πt/period)), factors uniform in ½ to 1½, mean |L| = 1.

    Args:
        shape: of a slice.
        slices: T.
        period: slices of a season.
        noise_std: standard deviation of the noise.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)
    angle = 2 * np.pi * np.arange(slices) / period
    rows = np.stack([1 + np.arange(slices) / (2 * slices), 1 + np.sin(angle), 1 + np.cos(angle)], axis=1)
    return _stream(rows, shape, lambda sizes: draws.factors.uniform(0.5, 1.5, sizes), noise_std, observed, draws)


def _stream(
    rows: Floats,
    shape: tuple[int, int],
    draw: Callable[[tuple[int, int]], Floats],
    noise_std: float,
    observed: float,
    draws: Draws,
) -> SyntheticStream:
    left, right = (draw((size, rows.shape[1])) for size in shape)
    truth = np.einsum("ir,tr,jr->tij", left, rows, right)
    truth /= np.abs(truth).mean()
    return assemble(
        truth,
        outliers=np.zeros_like(truth),
        outlier_mask=np.zeros(truth.shape, dtype=np.bool_),
        noise=scale(noise_std) * draws.noise.standard_normal(truth.shape),
        noise_std=noise_std,
        mask=draw_mask(truth.shape, observed, "random", draws.mask),
    )
