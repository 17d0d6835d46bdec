"""Generated streams whose truth is known: low rank, outliers, noise and mask are drawn separately.

Three families:

* :func:`drifting`: normal factors that drift, a fresh temporal row per slice; the hard case.
* :func:`authors`: positive, slowly drifting factors without a temporal row, as in the published experiments.
* :func:`traffic`: a day of origin-destination traffic with missing measurements and anomalies, for demonstrations.

Factors, temporal rows, outliers, noise and mask come from independent random streams of one seed. The truth is
therefore the same whatever fraction of it is observed or corrupted, and methods can be compared across masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from undertow.lab.synthetic.ingredients import (
    Draws,
    Floats,
    Missing,
    Sign,
    SyntheticStream,
    assemble,
    draw_mask,
    place_outliers,
    scale,
)
from undertow.lab.synthetic.traffic import traffic

__all__ = ["SyntheticStream", "authors", "drifting", "traffic"]

Temporal = Literal["normal", "constant"]

_AUTHORS_PERIOD = 600  # the published generator drifts by s = t/600, however long the stream is


def drifting(
    shape: Sequence[int],
    rank: int,
    *,
    slices: int = 100,
    observed: float = 1.0,
    outlier_fraction: float = 0.02,
    outlier_magnitude: float = 10.0,
    outlier_sign: Sign = "random",
    noise_std: float = 0.1,
    drift: float = 1.0,
    temporal: Temporal = "normal",
    missing: Missing = "random",
    change_at: int | None = None,
    normalize: bool = True,
    seed: int = 0,
) -> SyntheticStream:
    """Draw a low-rank stream whose factors move from one random draw to another.

    With P, Q ~ N(0, 1) for every mode n and t = 1..T, s = drift · t / T:

        A⁽ⁿ⁾(t) = (1 − s) P⁽ⁿ⁾ + s Q⁽ⁿ⁾,    L_t = Σ_r c_tr a_r⁽¹⁾(t) ∘ … ∘ a_r⁽ᴺ⁾(t),    c_t ~ N(0, I)

    The whole of L is divided by one constant so that mean |L| = 1; outliers and noise are added after that.

    Args:
        shape: sizes of the modes of one slice, one or more.
        rank: number of components.
        slices: T.
        observed: fraction of entries observed in every slice; exactly ⌈observed · n⌉ when missing at random.
        outlier_fraction: fraction of outliers in every slice, hidden entries included; exactly ⌊fraction · n⌋.
        outlier_magnitude: what an outlier adds, in the unit of the stream.
        outlier_sign: ``"random"``, ``"positive"`` or ``"negative"``.
        noise_std: standard deviation of the noise.
        drift: 0 (or False) keeps the factors at P, 1 (or True) takes them all the way to Q.
        temporal: ``"normal"`` draws c_t afresh for every slice, ``"constant"`` has c_t = 1.
        missing: ``"random"`` entries, ``"rows"`` (whole indices of the first mode, the nearest number of them) or
            ``"blocks"`` (one contiguous box per slice, sides as near as they come to the fraction hidden).
        change_at: index (from 0) of the first slice with entirely new P and Q.
        normalize: divide L so that mean |L| = 1.
        seed: every random draw follows from it.
    """
    sizes = _check(shape, rank, slices, drift, change_at)
    draws = Draws(seed)
    rows = _temporal_rows(temporal, slices, rank, draws.temporal)
    progress = drift * np.arange(1, slices + 1) / slices
    low_rank = _low_rank(sizes, rows, progress, change_at, draws.factors.standard_normal, lambda s, mode: s)
    if normalize:
        low_rank /= np.abs(low_rank).mean()
    outlier_mask, signs = place_outliers(low_rank.shape, outlier_fraction, outlier_sign, draws.outliers)
    return assemble(
        low_rank,
        outliers=outlier_magnitude * signs,
        outlier_mask=outlier_mask,
        noise=scale(noise_std) * draws.noise.standard_normal(low_rank.shape),
        noise_std=noise_std,
        mask=draw_mask(low_rank.shape, observed, missing, draws.mask),
    )


def authors(
    shape: Sequence[int],
    rank: int,
    *,
    slices: int = 100,
    observed: float = 1.0,
    outlier_fraction: float = 0.02,
    outlier_magnitude: float = 10.0,
    outlier_sign: Sign = "positive",
    noise_std: float = 0.01,
    drift: float = 1.0,
    temporal: Temporal = "constant",
    missing: Missing = "random",
    change_at: int | None = None,
    normalize: bool = True,
    seed: int = 0,
) -> SyntheticStream:
    """Draw the stream of the published experiments: positive factors, slow drift, no temporal row.

    With P, Q ~ U(0, 1) and s = drift · t / 600 for t = 1..T:

        A⁽¹⁾(t) = (1 − s) P⁽¹⁾ + s Q⁽¹⁾,    A⁽ⁿ⁾(t) = (1 − s) P⁽ⁿ⁾ + s² Q⁽ⁿ⁾ for n > 1

    With M the mean of the first low-rank slice, noise of ``noise_std`` and outliers of ``outlier_magnitude`` · M are
    added, and then everything, noise included, is divided by M (``normalize``). ``noise_std`` of the returned stream
    is therefore the argument divided by M, and an outlier adds exactly ``outlier_magnitude``.

    The other arguments are those of :func:`drifting`.
    """
    sizes = _check(shape, rank, slices, drift, change_at)
    draws = Draws(seed)
    rows = _temporal_rows(temporal, slices, rank, draws.temporal)
    progress = drift * np.arange(1, slices + 1) / _AUTHORS_PERIOD
    uniform, slower = draws.factors.random, lambda s, mode: s if mode == 0 else s**2
    low_rank = _low_rank(sizes, rows, progress, change_at, uniform, slower)
    # Normal temporal rows can give a first slice whose mean is near 0 or below; its mean size is always a scale.
    first = float(low_rank[0].mean() if temporal == "constant" else np.abs(low_rank[0]).mean())
    unit = first if normalize else 1.0
    outlier_mask, signs = place_outliers(low_rank.shape, outlier_fraction, outlier_sign, draws.outliers)
    return assemble(
        low_rank / unit,
        outliers=outlier_magnitude * first / unit * signs,
        outlier_mask=outlier_mask,
        noise=scale(noise_std) / unit * draws.noise.standard_normal(low_rank.shape),
        noise_std=noise_std / unit,
        mask=draw_mask(low_rank.shape, observed, missing, draws.mask),
    )


def _check(shape: Sequence[int], rank: int, slices: int, drift: float, change_at: int | None) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if not sizes or min(sizes) < 1:
        raise ValueError(f"shape must hold one or more sizes of at least 1, got {sizes}: use for example (40, 40)")
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got {rank}: use the number of components wanted")
    if slices < 1:
        raise ValueError(f"slices must be at least 1, got {slices}: use the number of slices wanted")
    if not 0 <= drift <= 1:
        raise ValueError(f"drift must lie between 0 (none) and 1 (full), got {drift}: choose a value in between")
    if change_at is not None and not 0 < change_at < slices:
        raise ValueError(f"change_at must lie between 1 and {slices - 1}, got {change_at}: name a slice of the stream")
    return sizes


def _low_rank(
    sizes: tuple[int, ...],
    rows: Floats,
    progress: Floats,
    change_at: int | None,
    draw: Callable[[tuple[int, int]], Floats],
    weight: Callable[[float, int], float],
) -> Floats:
    """L_t of factors (1 − s) P + weight(s, mode) Q; P and Q are drawn anew at `change_at`."""
    slices, rank = rows.shape
    low_rank = np.empty((slices, *sizes))
    for first, last in ((0, slices),) if change_at is None else ((0, change_at), (change_at, slices)):
        start, end = ([draw((size, rank)) for size in sizes] for _ in range(2))
        for t in range(first, last):
            s = progress[t]
            pairs = enumerate(zip(start, end, strict=True))
            low_rank[t] = _compose(rows[t], [(1 - s) * p + weight(s, mode) * q for mode, (p, q) in pairs])
    return low_rank


def _temporal_rows(temporal: Temporal, slices: int, rank: int, rng: np.random.Generator) -> Floats:
    if temporal == "normal":
        return rng.standard_normal((slices, rank))
    if temporal == "constant":
        return np.ones((slices, rank))
    raise ValueError(f'temporal must be "normal" or "constant", got {temporal!r}: choose one of the two')


def _compose(row: Floats, factors: Sequence[Floats]) -> Floats:
    """Σ_r c_r a_r⁽¹⁾ ∘ … ∘ a_r⁽ᴺ⁾ for any number of modes."""
    product = factors[0] * row
    for factor in factors[1:]:
        product = product[..., np.newaxis, :] * factor
    return np.asarray(product.sum(axis=-1), dtype=np.float64)
