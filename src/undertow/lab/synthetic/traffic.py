"""A generated day of origin-destination traffic: the stream that the demonstration runs on."""

from __future__ import annotations

import math

import numpy as np

from undertow.lab.synthetic.ingredients import (
    Bools,
    Draws,
    Floats,
    SyntheticStream,
    assemble,
    draw_mask,
    fraction_of,
    scale,
)


def traffic(
    nodes: int = 24,
    *,
    slices: int = 288,
    slices_per_day: int = 288,
    observed: float = 0.7,
    anomaly_fraction: float = 0.01,
    noise: float = 0.04,
    seed: int = 0,
) -> SyntheticStream:
    """Draw origin-destination traffic matrices (Mbit/s) as a network operator might see them.

    Demand is the sum of four kinds of use, each a gravity model, origins times destinations, with its own rhythm:

        L_t = Σ_k activity_k(t) · origin_k(t) ∘ destination_k(t)

    office hours, the evening at home, nightly backups between few sites, and machines that never sleep. Site sizes
    are log-normal (few large, many small) and wander slowly; every activity has a daily curve and slow random swings.
    Noise grows with a pair's usual traffic. Measurements are missing at random, and now and then one router reports
    nothing for a while. Anomalies come in two kinds: single pairs that surge or fail for one to four slices, and,
    rarely, a burst from many origins onto one destination. An outage never takes a pair below zero.

    Args:
        nodes: number of routers; slices are (nodes, nodes).
        slices: number of matrices.
        slices_per_day: how many make a day (288: one every five minutes).
        observed: fraction of entries that arrive, apart from the silent routers.
        anomaly_fraction: fraction of entries with an anomaly, about.
        noise: standard deviation of the noise relative to the usual traffic of a pair.
        seed: every random draw follows from it.
    """
    if nodes < 1 or slices < 1:
        raise ValueError(f"nodes and slices must be at least 1, got {nodes} and {slices}: use for example 24 and 288")
    if slices_per_day < 1:
        raise ValueError(f"slices_per_day must be at least 1, got {slices_per_day}: use 288 for five-minute matrices")
    draws = Draws(seed)
    low_rank = demand(nodes, np.arange(slices) / slices_per_day, draws)
    usual = low_rank.mean(axis=0)
    noise_part = scale(noise) * usual * draws.noise.standard_normal(low_rank.shape)
    noise_part = np.maximum(noise_part, -low_rank)
    outliers, outlier_mask = _anomalies(
        low_rank, usual, fraction_of("anomaly_fraction", anomaly_fraction), draws.outliers
    )
    mask = draw_mask(low_rank.shape, observed, "random", draws.mask)
    _silence_routers(mask, draws.mask)
    return assemble(
        low_rank,
        outliers=np.maximum(outliers, -0.999 * (low_rank + noise_part)),
        outlier_mask=outlier_mask,
        noise=noise_part,
        noise_std=float(noise * np.sqrt(np.mean(usual**2))),
        mask=mask,
    )


def demand(nodes: int, days: Floats, draws: Draws) -> Floats:
    """The four kinds of use, each with its sites and its rhythm, summed."""
    hour = 24 * (days % 1.0)
    rhythm = np.stack(
        [
            0.15 + _hump(hour, 10.5, 2.2) + 0.9 * _hump(hour, 15.0, 2.0),  # office hours, a dip at lunch
            0.15 + 0.3 * _hump(hour, 8.0, 1.5) + 1.1 * _hump(hour, 20.5, 2.5),  # homes, mostly in the evening
            0.03 + 1.4 * _hump(hour, 2.5, 1.0),  # backups
            np.full_like(hour, 0.35),  # machines
        ]
    )
    widths = (0.8, 0.6, 1.0, 0.9)  # backups join few sites, homes are everywhere
    slices = len(days)
    total = np.zeros((slices, nodes, nodes))
    for activity, sigma in zip(rhythm, widths, strict=True):
        origin = np.exp(sigma * draws.factors.standard_normal(nodes))
        destination = np.exp(sigma * draws.factors.standard_normal(nodes))
        swing = np.exp(_wander(draws.temporal, slices, 1, 0.10))
        origins = origin * np.exp(_wander(draws.temporal, slices, nodes, 0.05, memory=0.998))
        destinations = destination * np.exp(_wander(draws.temporal, slices, nodes, 0.05, memory=0.998))
        total += (activity[:, np.newaxis] * swing * origins)[:, :, np.newaxis] * destinations[:, np.newaxis, :]
    return np.asarray(total * (100.0 / total.mean()), dtype=np.float64)


def _hump(hour: Floats, centre: float, width: float) -> Floats:
    """A bell over the clock, whose distance goes round midnight."""
    distance = (hour - centre + 12) % 24 - 12
    return np.asarray(np.exp(-0.5 * (distance / width) ** 2), dtype=np.float64)


def _wander(rng: np.random.Generator, slices: int, columns: int, size: float, memory: float = 0.97) -> Floats:
    """A stationary AR(1) path of standard deviation ``size`` per column."""
    shocks = size * math.sqrt(1 - memory**2) * rng.standard_normal((slices, columns))
    path = np.empty((slices, columns))
    state = size * rng.standard_normal(columns)
    for t in range(slices):
        state = memory * state + shocks[t]
        path[t] = state
    return path


def _anomalies(low_rank: Floats, usual: Floats, fraction: float, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Surges and failures of single pairs, and bursts of many origins onto one destination."""
    slices, nodes, _ = low_rank.shape
    added = np.zeros_like(low_rank)
    typical = float(np.median(usual))
    wanted = round(fraction * low_rank.size)
    marked = np.zeros(low_rank.shape, dtype=np.bool_)
    # Each event marks at least one free entry or is wasted; the bound keeps a crowded stream from looping on.
    for _attempt in range(4 * wanted):
        if np.count_nonzero(marked) >= wanted:
            break
        begin, i, j = rng.integers(slices), rng.integers(nodes), rng.integers(nodes)
        kind = rng.uniform()
        if kind < 0.03 and wanted >= nodes:
            where = (begin, rng.uniform(size=nodes) < 0.6, j)
            added[where] = rng.uniform(2.0, 5.0) * (typical + usual[where[1], j])
            marked[where] = True
            continue
        span = slice(begin, begin + rng.integers(1, 5))
        if kind < 0.25:
            added[span, i, j] = -0.98 * low_rank[span, i, j]
        else:
            added[span, i, j] = rng.uniform(1.0, 5.0) * (0.5 * typical + usual[i, j])
        marked[span, i, j] = True
    return added, marked


def _silence_routers(mask: Bools, rng: np.random.Generator) -> None:
    """Hide all that one router reports for a stretch of 3–12 slices, about once in 60 slices."""
    slices, nodes, _ = mask.shape
    for _ in range(slices // 60):
        begin = int(rng.integers(slices))
        mask[begin : begin + int(rng.integers(3, 13)), int(rng.integers(nodes)), :] = False
