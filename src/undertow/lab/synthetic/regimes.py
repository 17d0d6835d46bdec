"""Streams that change their nature: each slice comes from one of several kinds of stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from undertow.lab.synthetic.counts import walks
from undertow.lab.synthetic.dynamics import seasonal
from undertow.lab.synthetic.ingredients import Draws, Floats, SyntheticStream, assemble, draw_mask, place_outliers
from undertow.lab.synthetic.streams import drifting

SHAPE = (12, 12)
NOISE = 0.1
SPIKES, SPIKE_SIZE = 0.05, 5.0
"""Fraction of the entries of a spiky slice that are off, and by how much; entries are around 1."""

Parts = tuple[Floats, Floats, Floats]
"""Truth, noise, outliers: each (T, *SHAPE)."""


def level(slices: int, seed: int) -> Parts:
    """Every entry a random walk of its own around 3: its own history is all there is to know."""
    stream = walks(SHAPE, slices=slices, noise_std=NOISE, observed=1.0, seed=seed)
    return 3 + stream.low_rank, stream.complete - stream.low_rank, np.zeros_like(stream.low_rank)


def factors(slices: int, seed: int) -> Parts:
    """Rank 3 with fixed factors and fresh rows: the other entries of the slice are all there is to know."""
    return _parts(drifting(SHAPE, 3, slices=slices, outlier_fraction=0.0, noise_std=NOISE, drift=0, seed=seed))


def drift(slices: int, seed: int) -> Parts:
    """Rank 3 with factors that move all the way to others: a long memory is out of date."""
    return _parts(drifting(SHAPE, 3, slices=slices, outlier_fraction=0.0, noise_std=NOISE, drift=1, seed=seed))


def covariance(slices: int, seed: int) -> Parts:
    """Fresh normal draws with a covariance of full rank, eigenvalues as 1/k, around fixed means: no rank is low."""
    draws = Draws(seed)
    entries = SHAPE[0] * SHAPE[1]
    directions, _ = np.linalg.qr(draws.factors.standard_normal((entries, entries)))
    weights = 1 / np.sqrt(np.arange(1, entries + 1))
    flat = (draws.temporal.standard_normal((slices, entries)) * weights) @ directions.T
    truth = draws.factors.standard_normal(SHAPE) + (flat / flat.std()).reshape(slices, *SHAPE)
    return truth, NOISE * draws.noise.standard_normal(truth.shape), np.zeros_like(truth)


def quiet(slices: int, seed: int) -> Parts:
    """Season and trend with small normal noise."""
    return _parts(seasonal(SHAPE, slices=slices, noise_std=NOISE, observed=1.0, seed=seed))


def spiky(slices: int, seed: int) -> Parts:
    """The same as `quiet`, a twentieth of the entries far off."""
    truth, noise, _ = quiet(slices, seed)
    _, signs = place_outliers(truth.shape, SPIKES, "random", Draws(seed).outliers)
    return truth, noise, SPIKE_SIZE * signs


def linear(slices: int, seed: int) -> Parts:
    """The truth of `quiet` spread over sizes of 1 to 50, under normal noise of one size."""
    truth, noise, none = quiet(slices, seed)
    truth = truth * _sizes(seed)
    return truth, noise * truth.mean(), none


def multiplicative(slices: int, seed: int) -> Parts:
    """The truth of `linear` under noise of a factor of exp(0.2 · N(0, 1))."""
    truth, noise, none = quiet(slices, seed)
    truth = truth * _sizes(seed)
    return truth, truth * (np.exp(2 * noise) - 1), none


def _sizes(seed: int) -> Floats:
    rows, columns = np.exp(Draws(seed).outliers.uniform(0, 2, (2, SHAPE[0])))
    return np.outer(rows, columns)


KINDS: Mapping[str, Callable[[int, int], Parts]] = {
    "level": level,
    "factors": factors,
    "drift": drift,
    "covariance": covariance,
    "quiet": quiet,
    "spiky": spiky,
    "linear": linear,
    "multiplicative": multiplicative,
}
"""What a slice may come from: (slices, seed) → its parts."""


def regimes(
    kinds: Sequence[str], *, slices: int = 200, every: int | None = None, observed: float = 0.7, seed: int = 0
) -> SyntheticStream:
    """A stream that goes from kind to kind: slice t is slice t of the kind whose turn it is.

    Args:
        kinds: names of `KINDS`, in turn.
        slices: how many in all.
        every: slices of one turn, after which the next kind follows, and the first after the last; None divides the
            stream evenly.
        observed: fraction of entries shown in every slice.
        seed: every random draw follows from it; a kind that comes back is the same stream, gone on meanwhile.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ValueError(f"unknown kind {', '.join(unknown) or '(none)'}: choose from {', '.join(KINDS)}")
    length = -(-slices // len(kinds)) if every is None else every
    made = {kind: KINDS[kind](slices, seed) for kind in kinds}
    turns = [made[kinds[t // length % len(kinds)]] for t in range(slices)]
    truth, noise, outliers = (np.stack([turn[part][t] for t, turn in enumerate(turns)]) for part in range(3))
    mask = draw_mask(truth.shape, observed, "random", Draws(seed).mask)
    return assemble(truth, outliers=outliers, outlier_mask=outliers != 0, noise=noise, noise_std=NOISE, mask=mask)


def _parts(stream: SyntheticStream) -> Parts:
    return stream.low_rank, stream.complete - stream.low_rank, np.zeros_like(stream.low_rank)
