"""Streams in which every entry goes its own way: counts with a rate of their own, random walks. No low rank helps."""

from __future__ import annotations

import numpy as np

from undertow.lab.synthetic.ingredients import Draws, SyntheticStream, assemble, draw_mask, scale


def poisson(
    mean: float, shape: tuple[int, ...] = (20, 20), *, slices: int = 300, observed: float = 0.8, seed: int = 0
) -> SyntheticStream:
    """Counts y ~ Poisson(λ) with a constant rate per entry, λ = mean · exp(½ g − ⅛), g ~ N(0, 1).

    The truth is the rate, the noise what a count differs from it; `noise_std` is √mean.

    Args:
        mean: of all rates, about; at .3 three quarters of the counts are zero.
        shape: of a slice.
        slices: how many.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)
    rates = scale(mean) * np.exp(0.5 * draws.factors.standard_normal(shape) - 0.125)
    truth = np.broadcast_to(rates, (slices, *shape)).copy()
    noise = draws.noise.poisson(truth) - truth
    return _plain(truth, noise, float(np.sqrt(mean)), observed, draws)


def walks(
    shape: tuple[int, int] = (20, 20),
    *,
    shared: bool = False,
    slices: int = 300,
    step: float = 0.1,
    noise_std: float = 0.1,
    observed: float = 0.8,
    seed: int = 0,
) -> SyntheticStream:
    """Random walks x_t = x_{t−1} + step · N(0, 1) from x_0 ~ N(0, 1), one for every entry, and noise.

    Args:
        shape: of a slice.
        shared: every entry is the sum of the walk of its row and the walk of its column instead.
        slices: how many.
        step: standard deviation of one step.
        noise_std: standard deviation of the noise.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)

    def walk(*sizes: int) -> np.ndarray:
        start, steps = draws.factors.standard_normal(sizes), draws.temporal.standard_normal((slices, *sizes))
        return np.asarray(start + step * np.cumsum(steps, axis=0), dtype=np.float64)

    truth = walk(shape[0])[:, :, np.newaxis] + walk(shape[1])[:, np.newaxis, :] if shared else walk(*shape)
    return _plain(truth, scale(noise_std) * draws.noise.standard_normal(truth.shape), noise_std, observed, draws)


def _plain(truth: np.ndarray, noise: np.ndarray, noise_std: float, observed: float, draws: Draws) -> SyntheticStream:
    return assemble(
        truth,
        outliers=np.zeros_like(truth),
        outlier_mask=np.zeros(truth.shape, dtype=np.bool_),
        noise=noise,
        noise_std=noise_std,
        mask=draw_mask(truth.shape, observed, "random", draws.mask),
    )
