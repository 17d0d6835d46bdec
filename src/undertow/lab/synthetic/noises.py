"""Low-rank streams whose noise is not normal: heavy tails, and noise in proportion to size."""

from __future__ import annotations

import math

import numpy as np

from undertow.lab.synthetic.ingredients import (
    Draws,
    SyntheticStream,
    assemble,
    draw_mask,
    fraction_of,
    place_outliers,
    scale,
)
from undertow.lab.synthetic.traffic import demand


def heavy_tailed(
    shape: tuple[int, int] = (20, 20),
    rank: int = 3,
    *,
    slices: int = 200,
    degrees: float = 3.0,
    noise_scale: float = 0.1,
    planted: float = 0.0,
    observed: float = 0.8,
    seed: int = 0,
) -> SyntheticStream:
    """Fixed factors, fresh normal temporal rows, mean |L| = 1, and noise of Student's t.

    Args:
        shape: of a slice.
        rank: components.
        slices: how many.
        degrees: of freedom of the noise; its variance is infinite at 2.
        noise_scale: what a draw of Student's t is multiplied by.
        planted: fraction of the entries of every slice that are off by ±10 to ±30 noise scales.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it; the same with and without planted outliers.
    """
    draws = Draws(seed)
    left, right = (draws.factors.standard_normal((size, rank)) for size in shape)
    truth = np.einsum("ir,tr,jr->tij", left, draws.temporal.standard_normal((slices, rank)), right)
    truth /= np.abs(truth).mean()
    where, signs = place_outliers(truth.shape, planted, "random", draws.outliers)
    sizes = noise_scale * draws.outliers.uniform(10, 30, truth.shape)
    return assemble(
        truth,
        outliers=signs * sizes,
        outlier_mask=where,
        noise=scale(noise_scale) * draws.noise.standard_t(degrees, truth.shape),
        noise_std=noise_scale * math.sqrt(degrees / (degrees - 2)) if degrees > 2 else math.inf,
        mask=draw_mask(truth.shape, observed, "random", draws.mask),
    )


def proportional(
    noise: float = 0.12,
    shape: tuple[int, int] = (20, 20),
    *,
    slices: int = 100,
    daily: bool = False,
    slices_per_day: int = 24,
    observed: float = 1.0,
    seed: int = 0,
) -> SyntheticStream:
    """One constant rank-1 matrix times exp(noise · N(0, 1)), with nothing wrong in it.

    Rows and columns are log-normal with σ = 1, so entries differ by factors of hundreds, and so does their noise.

    Args:
        noise: standard deviation of the logarithm.
        shape: of a slice.
        slices: how many.
        daily: the matrix goes up and down by a factor of 1 + ½ sin over the day.
        slices_per_day: how many make one.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)
    rows, columns = (np.exp(draws.factors.standard_normal(size)) for size in shape)
    curve = 1 + 0.5 * np.sin(2 * np.pi * np.arange(slices) / slices_per_day) * daily
    truth = curve[:, np.newaxis, np.newaxis] * np.outer(rows, columns)
    factor = np.exp(scale(noise) * draws.noise.standard_normal(truth.shape))
    return assemble(
        truth,
        outliers=np.zeros_like(truth),
        outlier_mask=np.zeros(truth.shape, dtype=np.bool_),
        noise=truth * (factor - 1),
        noise_std=float(noise * np.sqrt(np.mean(truth**2))),
        mask=draw_mask(truth.shape, observed, "random", draws.mask),
    )


def lognormal_traffic(
    nodes: int = 20,
    *,
    slices: int = 1075,
    slices_per_day: int = 288,
    noise: float = 0.12,
    anomalies: float = 557 / 430_000,
    seed: int = 0,
) -> SyntheticStream:
    """Traffic between routers whose noise is a factor of exp(noise · N(0, 1)), complete, with rare anomalies.

    The demand is that of `traffic`. An anomaly multiplies one entry by exp(±u), u uniform in 0.8 to 2: traffic that
    surges two to seven times, or falls to between a half and a seventh.

    Args:
        nodes: number of routers; slices are (nodes, nodes).
        slices: number of matrices.
        slices_per_day: how many make a day.
        noise: standard deviation of the logarithm.
        anomalies: fraction of all entries.
        seed: every random draw follows from it.
    """
    draws = Draws(seed)
    truth = demand(nodes, np.arange(slices) / slices_per_day, draws)
    usual = truth * np.exp(scale(noise) * draws.noise.standard_normal(truth.shape))
    where = np.zeros(truth.shape, dtype=np.bool_)
    count = round(fraction_of("anomalies", anomalies) * truth.size)
    where.flat[draws.outliers.choice(truth.size, count, replace=False)] = True
    exponent = draws.outliers.uniform(0.8, 2.0, truth.shape) * draws.outliers.choice([-1.0, 1.0], truth.shape)
    return assemble(
        truth,
        outliers=np.where(where, usual * (np.exp(exponent) - 1), 0.0),
        outlier_mask=where,
        noise=usual - truth,
        noise_std=float(noise * np.sqrt(np.mean(truth**2))),
        mask=np.ones(truth.shape, dtype=np.bool_),
    )
