"""What a generated stream is put together from: independent random draws, outliers, masks, and the stream itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Missing = Literal["random", "rows", "blocks"]
Sign = Literal["random", "positive", "negative"]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
        """True where a method sees nothing: the entries on which completion is scored."""
        return ~self.mask

    def __len__(self) -> int:
        return len(self.values)


class Draws:
    """One independent generator per ingredient, so that changing one leaves the others as they were."""

    def __init__(self, seed: int) -> None:
        children = np.random.SeedSequence(seed).spawn(5)
        self.factors, self.temporal, self.outliers, self.noise, self.mask = map(np.random.default_rng, children)


def fraction_of(name: str, value: float) -> float:
    """Check that ``value`` is a fraction between 0 and 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}: give a fraction, not a percentage")
    return float(value)


def scale(noise_std: float) -> float:
    """Check that ``noise_std`` can be a standard deviation."""
    if not (math.isfinite(noise_std) and noise_std >= 0):
        raise ValueError(f"noise must be a finite number of at least 0, got {noise_std}: use 0 for none")
    return float(noise_std)


def place_outliers(
    shape: tuple[int, ...], fraction: float, sign: Sign, rng: np.random.Generator
) -> tuple[Bools, Floats]:
    """Exactly ⌊fraction · n⌋ entries of every slice, without replacement, and the sign of each (0 elsewhere)."""
    entries = math.prod(shape[1:])
    count = math.floor(fraction_of("outlier_fraction", fraction) * entries + 1e-9)
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


def draw_mask(shape: tuple[int, ...], observed: float, missing: Missing, rng: np.random.Generator) -> Bools:
    """Decide for every slice what is observed; the patterns are those of ``drifting``."""
    kept = fraction_of("observed", observed)
    sizes = shape[1:]
    mask = np.full(shape, missing == "blocks")
    if missing == "random":
        for row in mask.reshape(len(mask), -1):
            row[rng.choice(row.size, size=_at_least(kept, row.size), replace=False)] = True
        return mask
    if missing == "rows":
        for one in mask:
            one[rng.choice(sizes[0], size=_at_least(kept, sizes[0]), replace=False)] = True
        return mask
    if missing == "blocks":
        sides = [round((1 - kept) ** (1 / len(sizes)) * size) for size in sizes]
        if kept > 0 and sides == list(sizes):
            sides[int(np.argmax(sizes))] -= 1  # small slices round to a box that would hide all
        for one in mask:
            corner = [int(rng.integers(size - side + 1)) for size, side in zip(sizes, sides, strict=True)]
            one[tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))] = False
        return mask
    raise ValueError(f'missing must be "random", "rows" or "blocks", got {missing!r}: choose one of the three')


def _at_least(fraction: float, count: int) -> int:
    """⌈fraction · count⌉, not thrown off by the rounding of the product."""
    return math.ceil(fraction * count - 1e-9)


def assemble(
    low_rank: Floats, *, outliers: Floats, outlier_mask: Bools, noise: Floats, noise_std: float, mask: Bools
) -> SyntheticStream:
    """Add the ingredients up and hide what the mask hides."""
    complete = low_rank + outliers + noise
    return SyntheticStream(
        values=np.where(mask, complete, np.nan),
        mask=mask,
        low_rank=low_rank,
        complete=complete,
        outlier_mask=outlier_mask,
        noise_std=float(noise_std),
    )
