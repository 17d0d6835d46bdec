"""Generated streams whose truth is known: low rank, outliers, noise and mask are drawn separately.

Three families:

* :func:`drifting`: normal factors that drift, a fresh temporal row per slice; the hard case.
* :func:`authors`: positive, slowly drifting factors without a temporal row, as in the published experiments.
* :func:`traffic`: a day of origin-destination traffic with missing measurements and anomalies, for demonstrations.

Factors, temporal rows, outliers, noise and mask come from independent random streams of one seed. The truth is
therefore the same whatever share of it is observed or corrupted, and methods can be compared across masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Temporal = Literal["normal", "constant"]
Missing = Literal["random", "rows", "blocks"]
Sign = Literal["random", "positive", "negative"]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_AUTHORS_PERIOD = 600  # the published generator drifts by s = t/600, however long the stream is


@dataclass(frozen=True)
class SyntheticStream:
    """A stream of T slices together with everything that went into it.

    Attributes:
        values: (T, *shape), what a method may see: low rank + outliers + noise, NaN where hidden.
        mask: (T, *shape), True where observed.
        low_rank: (T, *shape), the truth that a method should recover.
        complete: (T, *shape), like ``values`` but with nothing hidden.
        outlier_mask: (T, *shape), True where an outlier was added, hidden entries included.
        noise_std: standard deviation of the noise, in the unit of ``values``.
    """

    values: Floats
    mask: Bools
    low_rank: Floats
    complete: Floats
    outlier_mask: Bools
    noise_std: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one slice."""
        return tuple(self.values.shape[1:])

    @property
    def hidden(self) -> Bools:
        """True where a method sees nothing: the entries on which completion is judged."""
        return ~self.mask

    def __len__(self) -> int:
        return len(self.values)


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
        observed: share of entries observed in every slice; exactly ⌈observed · n⌉ when missing at random.
        outlier_fraction: share of outliers in every slice, hidden entries included; exactly ⌊fraction · n⌋.
        outlier_magnitude: what an outlier adds, in the unit of the stream.
        outlier_sign: ``"random"``, ``"positive"`` or ``"negative"``.
        noise_std: standard deviation of the noise.
        drift: 0 (or False) keeps the factors at P, 1 (or True) takes them all the way to Q.
        temporal: ``"normal"`` draws c_t afresh for every slice, ``"constant"`` has c_t = 1.
        missing: ``"random"`` entries, ``"rows"`` (whole indices of the first mode, the nearest number of them) or
            ``"blocks"`` (one contiguous box per slice, sides as near as they come to the share hidden).
        change_at: index (from 0) of the first slice with entirely new P and Q.
        normalize: divide L so that mean |L| = 1.
        seed: every random draw follows from it.
    """
    sizes = _check(shape, rank, slices, drift, change_at)
    draws = _Draws(seed)
    progress = drift * np.arange(1, slices + 1) / slices
    rows = _temporal_rows(temporal, slices, rank, draws.temporal)
    low_rank = np.empty((slices, *sizes))
    for part in _parts(slices, change_at):
        start = [draws.factors.standard_normal((size, rank)) for size in sizes]
        end = [draws.factors.standard_normal((size, rank)) for size in sizes]
        for t in range(part.start, part.stop):
            s = progress[t]
            factors = [(1 - s) * p + s * q for p, q in zip(start, end, strict=True)]
            low_rank[t] = _compose(rows[t], factors)
    if normalize:
        low_rank /= np.abs(low_rank).mean()
    outlier_mask, signs = _place_outliers(low_rank.shape, outlier_fraction, outlier_sign, draws.outliers)
    return _assemble(
        low_rank,
        outliers=outlier_magnitude * signs,
        outlier_mask=outlier_mask,
        noise=_scale(noise_std) * draws.noise.standard_normal(low_rank.shape),
        noise_std=noise_std,
        mask=_draw_mask(low_rank.shape, observed, missing, draws.mask),
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
    draws = _Draws(seed)
    progress = drift * np.arange(1, slices + 1) / _AUTHORS_PERIOD
    rows = _temporal_rows(temporal, slices, rank, draws.temporal)
    low_rank = np.empty((slices, *sizes))
    for part in _parts(slices, change_at):
        start = [draws.factors.uniform(size=(size, rank)) for size in sizes]
        end = [draws.factors.uniform(size=(size, rank)) for size in sizes]
        for t in range(part.start, part.stop):
            s = progress[t]
            factors = [
                (1 - s) * p + (s if mode == 0 else s**2) * q for mode, (p, q) in enumerate(zip(start, end, strict=True))
            ]
            low_rank[t] = _compose(rows[t], factors)
    # Normal temporal rows can give a first slice whose mean is near 0 or below; its mean size is always a scale.
    first = float(low_rank[0].mean() if temporal == "constant" else np.abs(low_rank[0]).mean())
    unit = first if normalize else 1.0
    outlier_mask, signs = _place_outliers(low_rank.shape, outlier_fraction, outlier_sign, draws.outliers)
    return _assemble(
        low_rank / unit,
        outliers=outlier_magnitude * first / unit * signs,
        outlier_mask=outlier_mask,
        noise=_scale(noise_std) / unit * draws.noise.standard_normal(low_rank.shape),
        noise_std=noise_std / unit,
        mask=_draw_mask(low_rank.shape, observed, missing, draws.mask),
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
    nothing for a while. Anomalies come in two kinds: single pairs that surge or fail for one to four slices, and, rarely,
    a burst from many origins onto one destination. An outage never takes a pair below zero.

    Args:
        nodes: number of routers; slices are (nodes, nodes).
        slices: number of matrices.
        slices_per_day: how many make a day (288: one every five minutes).
        observed: share of entries that arrive, apart from the silent routers.
        anomaly_fraction: share of entries with an anomaly, about.
        noise: standard deviation of the noise relative to the usual traffic of a pair.
        seed: every random draw follows from it.
    """
    _check((nodes, nodes), 4, slices, 1.0, None)
    if slices_per_day < 1:
        raise ValueError(f"slices_per_day must be at least 1, got {slices_per_day}: use 288 for five-minute matrices")
    draws = _Draws(seed)
    low_rank = _demand(nodes, np.arange(slices) / slices_per_day, draws)
    usual = low_rank.mean(axis=0)
    noise_part = _scale(noise) * usual * draws.noise.standard_normal(low_rank.shape)
    noise_part = np.maximum(noise_part, -low_rank)
    outliers, outlier_mask = _anomalies(low_rank, usual, _share("anomaly_fraction", anomaly_fraction), draws.outliers)
    mask = _draw_mask(low_rank.shape, observed, "random", draws.mask)
    _silence_routers(mask, draws.mask)
    return _assemble(
        low_rank,
        outliers=np.maximum(outliers, -0.999 * (low_rank + noise_part)),
        outlier_mask=outlier_mask,
        noise=noise_part,
        noise_std=float(noise * np.sqrt(np.mean(usual**2))),
        mask=mask,
    )


class _Draws:
    """One independent generator per ingredient, so that changing one leaves the others as they were."""

    def __init__(self, seed: int) -> None:
        children = np.random.SeedSequence(seed).spawn(5)
        self.factors, self.temporal, self.outliers, self.noise, self.mask = map(np.random.default_rng, children)


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


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}: give a share, not a percentage")
    return float(value)


def _scale(noise_std: float) -> float:
    if not (math.isfinite(noise_std) and noise_std >= 0):
        raise ValueError(f"noise must be a finite number of at least 0, got {noise_std}: use 0 for none")
    return float(noise_std)


def _parts(slices: int, change_at: int | None) -> list[slice]:
    """The stretches of the stream that share one pair (P, Q)."""
    return [slice(0, slices)] if change_at is None else [slice(0, change_at), slice(change_at, slices)]


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


def _place_outliers(
    shape: tuple[int, ...], fraction: float, sign: Sign, rng: np.random.Generator
) -> tuple[Bools, Floats]:
    """Exactly ⌊fraction · n⌋ entries of every slice, without replacement, and the sign of each (0 elsewhere)."""
    entries = math.prod(shape[1:])
    count = math.floor(_share("outlier_fraction", fraction) * entries + 1e-9)
    signs = np.zeros((shape[0], entries))
    for row in signs:
        chosen = rng.choice(entries, size=count, replace=False)
        if sign == "random":
            row[chosen] = rng.choice([-1.0, 1.0], size=count)
        elif sign in ("positive", "negative"):
            row[chosen] = 1.0 if sign == "positive" else -1.0
        else:
            raise ValueError(f'outlier_sign must be "random", "positive" or "negative", got {sign!r}: choose one')
    return (signs != 0).reshape(shape), signs.reshape(shape)


def _draw_mask(shape: tuple[int, ...], observed: float, missing: Missing, rng: np.random.Generator) -> Bools:
    share = _share("observed", observed)
    sizes = shape[1:]
    mask = np.zeros((shape[0], math.prod(sizes)), dtype=np.bool_)
    if missing == "random":
        for row in mask:
            row[rng.choice(row.size, size=_at_least(share, row.size), replace=False)] = True
        return mask.reshape(shape)
    if missing == "rows":
        mask = mask.reshape(shape)
        for one in mask:
            one[rng.choice(sizes[0], size=_at_least(share, sizes[0]), replace=False)] = True
        return mask
    if missing == "blocks":
        mask = ~mask.reshape(shape)
        sides = [round((1 - share) ** (1 / len(sizes)) * size) for size in sizes]
        if share > 0 and sides == list(sizes):
            sides[int(np.argmax(sizes))] -= 1  # small slices round to a box that would hide all
        for one in mask:
            corner = [int(rng.integers(size - side + 1)) for size, side in zip(sizes, sides, strict=True)]
            one[tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))] = False
        return mask
    raise ValueError(f'missing must be "random", "rows" or "blocks", got {missing!r}: choose one of the three')


def _at_least(share: float, count: int) -> int:
    """⌈share · count⌉, not thrown off by the rounding of the product."""
    return math.ceil(share * count - 1e-9)


def _assemble(
    low_rank: Floats, *, outliers: Floats, outlier_mask: Bools, noise: Floats, noise_std: float, mask: Bools
) -> SyntheticStream:
    complete = low_rank + outliers + noise
    return SyntheticStream(
        values=np.where(mask, complete, np.nan),
        mask=mask,
        low_rank=low_rank,
        complete=complete,
        outlier_mask=outlier_mask,
        noise_std=float(noise_std),
    )


def _demand(nodes: int, days: Floats, draws: _Draws) -> Floats:
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
    spread = (0.8, 0.6, 1.4, 1.0)  # backups join few sites, homes are everywhere
    slices = len(days)
    total = np.zeros((slices, nodes, nodes))
    for activity, sigma in zip(rhythm, spread, strict=True):
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
            added[where] = rng.uniform(4.0, 8.0) * (typical + usual[where[1], j])
            marked[where] = True
            continue
        span = slice(begin, begin + rng.integers(1, 5))
        if kind < 0.25:
            added[span, i, j] = -0.98 * low_rank[span, i, j]
        else:
            added[span, i, j] = rng.uniform(2.0, 8.0) * (typical + usual[i, j])
        marked[span, i, j] = True
    return added, marked


def _silence_routers(mask: Bools, rng: np.random.Generator) -> None:
    """Hide all that one router reports for a stretch of 3–12 slices, about once in 60 slices."""
    slices, nodes, _ = mask.shape
    for _ in range(slices // 60):
        begin = int(rng.integers(slices))
        mask[begin : begin + int(rng.integers(3, 13)), int(rng.integers(nodes)), :] = False
