"""Origin, unit and scale of a stream: one decision, from its recent slices, revised when they say otherwise.

The scale follows from how changes grow with size: not at all (linear), as the root (square root; counts) or in
proportion (logarithm). Slices of another size than the others do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice
from undertow.tracker.scales import LINEAR, LOG, ROOT

ODD = 30.0
"""A slice is odd if its typical size differs from that of the others by more than this factor."""
FEWEST_SLICES = 5
"""Slices from which on entries are compared with what is usual of them."""
MANY_GROSS = 0.04
"""Fraction of the observed entries that are grossly off, from which on the first slices are not believed."""
BINS = 8
"""Groups of changes by size."""
FEWEST_CHANGES = 40
"""Changes of entries that must have been seen before another scale than the linear one is believed."""
NARROW = 2.0
"""Where sizes differ by less than this factor, all scales are alike."""
LIMITS = 0.5, 1.4
"""Exponents of the variance over the size from which on the scale is the root, and the logarithm."""
STEEPEST = 3.0
"""Exponents from here on are not those of noise, which grows in proportion at most: what is wrong is larger than the
rest, and its changes are."""
FIRM = 0.1
"""How far beyond these limits an exponent must lie to change a scale that is in use."""
SIGNED = 0.02
"""Fraction of what lies below zero in the sizes of all values, none larger than the upper quartile, from which on the
data are not sizes of something, measured with noise; twice as much to leave a curved scale."""
REVISED = 4.0
"""An origin is revised if it is wrong by more than this many units; on the logarithmic scale, where the unit says from
where on sizes are compared by their ratio, a unit if by more than this factor."""
UNIT_REVISED = 30.0
"""A unit is revised if it is wrong by more than this factor on the other scales: there it is a matter of precision
only, and answers were the same with units 30 times too large and 1000 times too small."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Frame:
    """z = scale((x − origin) / unit)."""

    origin: float = 0.0
    unit: float = 1.0
    scale: int = LINEAR

    def relative(self, values: Floats) -> Floats:
        """(x − origin) / unit in single precision, the difference taken in double; infinite where it is too large."""
        with np.errstate(over="ignore"):
            return np.asarray((values.astype(np.float64) - self.origin) / self.unit, np.float32)

    def absolute(self, relative: Any) -> Floats:
        """x."""
        return np.asarray(relative, np.float64) * self.unit + self.origin


def stacked(frames: Sequence[Frame], modes: int) -> Frame:
    """Many frames as one, which broadcasts against slices of `modes` modes with the streams first."""
    columns: Any = [
        np.array([getattr(one, name) for one in frames], kind).reshape(-1, *[1] * modes)
        for name, kind in (("origin", np.float64), ("unit", np.float64), ("scale", np.int32))
    ]
    return Frame(*columns)


def choose(
    recent: Sequence[Slice], current: Frame | None = None, scale: int | None = None, within: float = 1.0
) -> Frame | None:
    """The frame that suits these slices, oldest first; None as long as there is nothing but zeros.

    Args:
        recent: Slices in which something was observed.
        current: The frame in use: it stays unless another is clearly better.
        scale: The scale, if it is not to be chosen.
        within: Of the limits within which the current one stays.
    """
    usual = usual_slices(recent)
    values = _values(usual) if usual else np.zeros(0)
    if not np.any(values):
        return None
    scale = suggested(usual, current) if scale is None else scale
    origin = float(np.median(values)) if scale == LINEAR else 0.0
    sizes = np.abs(values - origin)
    unit = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else abs(origin)
    wanted = Frame(origin, unit, scale)
    if current is None or scale != current.scale:
        return wanted
    ratio = unit / current.unit
    moved = abs(origin - current.origin) / max(unit, current.unit)
    most = (REVISED if scale == LOG else UNIT_REVISED) * within
    return current if 1 / most < ratio < most and moved < REVISED * within else wanted


def _values(recent: Sequence[Slice]) -> Floats:
    return np.concatenate([one.values[one.mask].astype(np.float64) for one in recent])


def usual_slices(recent: Sequence[Slice]) -> list[Slice]:
    """Those that are not of another size than most, without entries that are grossly off.

    Which these are does not depend on a scale, and what comes first is seen in the light of what came later.
    """
    sizes = np.array([_size(one) for one in recent])
    known = sizes > 0
    if not known.any():
        return []
    # Where there are two, the later one decides: the answer is about that one.
    middle = np.median(sizes[known]) if known.sum() > 2 else sizes[known][-1]
    usual = known & (sizes < ODD * middle) & (sizes > middle / ODD)
    return _without_gross([one for one, fits in zip(recent, usual, strict=True) if fits])


def misled(recent: Sequence[Slice]) -> bool:
    """Whether too many entries are grossly off for what was learned from these slices as they came to be of use."""
    usual = usual_slices(recent)
    kept, observed = (sum(int(one.mask.sum()) for one in some) for some in (usual, recent))
    return len(usual) == len(recent) and kept < (1 - MANY_GROSS) * observed


def _without_gross(recent: list[Slice]) -> list[Slice]:
    """Without entries `ODD` times farther from their median than they, or the others that move, usually are."""
    if len(recent) < FEWEST_SLICES:
        return recent
    values = np.array([np.where(one.mask, one.values, np.nan).ravel() for one in recent], np.float64)
    away = np.abs(values - _medians(values))
    moving = away[away > 0]
    if not moving.size:
        return recent
    far = away > ODD * np.maximum(_medians(away), np.median(moving))
    return [
        Slice(one.values, one.mask & ~off.reshape(one.shape)) if off.any() else one
        for one, off in zip(recent, far, strict=True)
    ]


def _medians(rows: Floats) -> Floats:
    """Of every column (T, n) → (n,), without what is NaN; NaN where there is nothing else."""
    ordered, count = np.sort(rows, axis=0), (~np.isnan(rows)).sum(axis=0)
    middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2])
    found: Floats = np.take_along_axis(ordered, middle, axis=0).mean(axis=0)
    return found


def _size(one: Slice) -> float:
    sizes = np.abs(one.values[one.mask])
    return float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0


def suggested(recent: Sequence[Slice], current: Frame | None = None) -> int:
    """The scale that the growth of changes with size asks for; these slices are usual ones, and not all zero."""
    if _signed(recent) > (SIGNED if current is None or current.scale == LINEAR else 2 * SIGNED):
        return LINEAR
    exponent = _exponent(recent)
    if exponent is None:
        return LINEAR if current is None else current.scale
    limits = list(LIMITS)
    if current is not None:  # leaving the scale in use takes more than entering it
        limits = [limit + (FIRM if current.scale <= number else -FIRM) for number, limit in enumerate(limits)]
    return LOG if exponent > limits[1] else ROOT if exponent > limits[0] else LINEAR


def _signed(recent: Sequence[Slice]) -> float:
    """Fraction of what lies below zero in the sizes of all values."""
    values = _values(recent)
    sizes = np.abs(values)
    sizes = np.minimum(sizes, np.quantile(sizes[sizes > 0], 0.75))
    return float(sizes[values < 0].sum() / sizes.sum())


def _exponent(recent: Sequence[Slice]) -> float | None:
    """p of Var(change) ∝ size^p, from changes of entries between their observations; None where that is not clear."""
    size, change = changes(recent)
    if size.size < FEWEST_CHANGES:
        return None
    order = np.argsort(size, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if part.size]
    x = np.array([np.log(size[part]).mean() for part in bins])
    usual = np.array([_typical(change[part]) for part in bins])
    used = usual > 0
    if used.sum() < 3 or np.ptp(x[used]) < np.log(NARROW):
        return None
    slope, between = _slopes(x[used], 2 * np.log(usual[used]))
    clear = slope < STEEPEST and np.digitize(slope, LIMITS) == np.digitize(between, LIMITS)
    return slope if clear else None


def _slopes(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope by least squares, and the median of those between two points, which a few that are wrong do not move."""
    one, other = np.triu_indices(len(x), 1)
    apart = x[one] != x[other]
    between = (y[one] - y[other])[apart] / (x[one] - x[other])[apart]
    return float(np.polyfit(x, y, 1)[0]), float(np.median(between))


def changes(recent: Sequence[Slice]) -> tuple[Floats, Floats]:
    """Of entries between two observations: the size of the entry, where that is positive, and that of the change."""
    last = np.full(recent[0].values.size, np.nan)
    sizes, differences = [], []
    for one in recent:
        values, mask = one.values.ravel().astype(np.float64), one.mask.ravel()
        both = mask & ~np.isnan(last)
        sizes.append((values[both] + last[both]) / 2)
        differences.append(np.abs(values[both] - last[both]))
        last[mask] = values[mask]
    size, difference = np.concatenate(sizes), np.concatenate(differences)
    return size[size > 0], difference[size > 0]


def _typical(differences: Floats) -> float:
    """Mean size of changes, the largest tenth left out unless only that is not 0."""
    ordered = np.sort(differences)
    kept = ordered[: max(1, int(0.9 * ordered.size))]
    return float(kept.mean()) or float(ordered.mean())
