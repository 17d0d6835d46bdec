"""Forecasts of several slices ahead: candidates, weighed and calibrated by how earlier forecasts turned out.

For every horizon h of a ladder (1, 2, 4, …, and the period of the season) a few forecasts are pending at a time. When
its slice arrives, the errors of its candidates are added to a Gram matrix of that horizon. Forecasts combine the
candidates by the same non-negative least squares as the tracker does (`combination`), on the errors of horizons like
theirs: about as long, and at about the same phase of the season. Far ahead, where few independent errors are known,
weights fitted to them may do worse than the last answer alone: how both have done decides how much of it is mixed in.

The standard deviation of a forecast is that of one step times a factor: the quantile of what forecasts of horizons like
it were off by lately, in standard deviations, times f, log f ← log f + η (share beyond ±1.96 std − 5 %), so that in the
long run 95 % of what comes lies within, outliers included, however uneven slices are.

A season that is found changes all forecasts: what was known of them begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.model import platform
from undertow.model.types import Core as ModelCore
from undertow.programs.program import program
from undertow.tracker import scales
from undertow.tracker import season as seasons
from undertow.tracker.combination import simplex_weights
from undertow.tracker.core import Core
from undertow.tracker.predictors.base import Given
from undertow.tracker.predictors.cp import rows_ahead
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.scales import LINEAR
from undertow.tracker.season import LEVEL, Season

LADDER = tuple(2**power for power in range(10))
"""Horizons at which forecasts are scored."""
CANDIDATES = ("level", "last", "cp", "season", "profile", "latest")
"""The local level, the last answer, the rows of the CP model; the season with its deviation of now and without, and as
it was in the last cycle."""
MEMORY = 10
"""Horizons after which errors are forgotten: what is said of tomorrow is judged by days, at all their hours."""
COVERED = 0.95
"""Of what comes, within the error bars."""
FACTOR_STEP = 0.3
"""η: how far one score moves the width of the error bars."""
LOWEST, WIDTH, BINS = -4.0, 0.1, 80
"""Of the histogram of log (error / 1.96 std)."""
BLOCK = 16
"""Horizons are computed in blocks of this size, so that few programs are compiled."""
TOGETHER = 4
"""Forecasts are scored in multiples of this number, so that few programs are compiled."""
MOST_PENDING, PENDING_NUMBERS = 8, 4_000_000
"""Forecasts of a horizon that are pending at a time, at most, and the numbers that all of them may hold."""
LAST = CANDIDATES.index("last")
NEARNESS = 3.0
"""How fast the errors of other horizons lose their worth: by 2 to this power for every factor of two."""
CYCLE = 8.0
"""Factors of two that a whole cycle between the phases of two horizons is worth."""
UNLIKE = 4.0
"""Factors of two between horizons of whole cycles and others: in a day it is the same hour, in 23 hours it is not."""
CONFIDENCE = 2.0
"""Power of the ratio of errors by which the combination and the last answer count, per independent forecast."""
EXACT = 1e-8
"""Squared error of a forecast over the square of its slice below which it is as good as none."""
LARGEST_SLICE = 40_000
"""Entries beyond which no forecasts are scored: they take too long."""
MOST_SCORED = 4096
"""Entries by which forecasts are scored; of larger slices a random sample, the same at all times."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Pending:
    """A forecast whose slice has not come yet: the slice, by the clock of the season; candidates (C, k); std (k,).

    k is n, or `MOST_SCORED` of them.
    """

    due: int
    means: Floats
    std: Floats


@dataclass(frozen=True)
class Scored:
    """How forecasts of one horizon turned out.

    Attributes:
        gram: Errors of the candidates (C, C).
        spread: Histogram of log (error / 1.96 std) of the entries (BINS,), discounted, in independent forecasts.
        factor: log f.
        count: How many.
        excess: Σ log (error of the combination / error of the last answer), discounted, in independent forecasts.
    """

    gram: Floats
    spread: Floats = field(default_factory=lambda: np.zeros(BINS, np.float32))
    factor: float = 0.0
    count: int = 0
    excess: float = 0.0


class Learned(NamedTuple):
    """What forecasts of horizons like one have taught: as `Scored`, with the whole log factor of the error bars; the
    fraction of the last answer in place of excess."""

    gram: Floats
    factor: np.float32
    share: np.float32


@dataclass(frozen=True)
class Ahead:
    """Forecasts that are pending, and how earlier ones turned out, by horizon; the period that these were made with."""

    pending: dict[int, tuple[Pending, ...]] = field(default_factory=dict)
    scored: dict[int, Scored] = field(default_factory=dict)
    period: int = 0


def most_bytes(entries: int) -> int:
    """The most memory that pending forecasts take."""
    return 0 if entries > LARGEST_SLICE else 4 * min(PENDING_NUMBERS, _pending_numbers(entries) * MOST_PENDING)


class Outlook(NamedTuple):
    """What is expected after a slice, with the horizons it was asked for: the level, the standard deviation of the next
    slice, the last answer (k,) and rows (H, k), of all entries or some."""

    horizons: list[int]
    level: Floats
    std: Floats
    last: Floats
    rows: Floats


class Compared(NamedTuple):
    """Horizons of the forecasts of a slice, and what these were worth by `compared`; it may still be computed."""

    horizons: list[int]
    worth: tuple[Any, ...]


def follow(ahead: Ahead, season: Season, expected: Outlook) -> Ahead:
    """After a slice of at most `LARGEST_SLICE` entries, with forecasts of what is to come at these horizons."""
    return with_forecasts(ahead, season, expected.horizons, *_candidates(expected, season, of_sample))


def scored(ahead: Ahead, clock: int, values: Floats, observed: NDArray[np.bool_], scale: Any, period: int = 0) -> Ahead:
    """With forecasts of this slice compared with what was observed; those of slices that never came are dropped."""
    return with_compared(ahead, clock, comparing(ahead, clock, values, observed, scale, period), values.size)


def comparing(
    ahead: Ahead, clock: int, values: Floats, observed: NDArray[np.bool_], scale: Any, period: int = 0
) -> Compared:
    """Begin to compare forecasts of this slice with what was observed of it."""
    due = due_at(ahead, clock) if observed.any() else []
    if not due:
        return Compared([], ())
    asked = [due[min(position, len(due) - 1)] for position in range(-(-len(due) // TOGETHER) * TOGETHER)]
    means, std = (np.stack(part) for part in zip(*((one.means, one.std) for _, one in asked), strict=True))
    known = (nearby(ahead, horizon, period) for horizon, _ in asked)
    grams, _, shares = (np.stack(part) for part in zip(*known, strict=True))
    factors = np.stack([factor_of(ahead, horizon) for horizon, _ in asked])
    with platform.on_host():  # a device would have to finish what it does before it answered
        worth = compared(values, observed, means, std, grams, shares, factors, scale)
    return Compared([horizon for horizon, _ in due], worth)


def with_compared(ahead: Ahead, clock: int, made: Compared, entries: int) -> Ahead:
    """After the slice that forecasts were compared with; `entries` of it."""
    found = list(zip(*map(np.asarray, made.worth), strict=True))
    return with_scores(ahead, clock, made.horizons, found[: len(made.horizons)], entries)


def period_in(season: Season) -> int:
    """The period in use, 0 if there is none."""
    return season.periods[0] if season.periods else 0


@lru_cache(maxsize=8)
def sampled(entries: int) -> NDArray[np.intp] | None:
    """Entries of a slice by which forecasts are scored; None for all."""
    if entries <= MOST_SCORED:
        return None
    return np.sort(np.random.default_rng(0).choice(entries, MOST_SCORED, replace=False))


def of_sample(values: NDArray[Any]) -> NDArray[Any]:
    """The scored ones of the last axis (…, n)."""
    places = sampled(values.shape[-1])
    return values if places is None else values[..., places]


def due_at(ahead: Ahead, clock: int) -> list[tuple[int, Pending]]:
    """Forecasts of this slice, with their horizons."""
    return [(horizon, one) for horizon, several in ahead.pending.items() for one in several if one.due == clock]


def factor_of(ahead: Ahead, horizon: int) -> np.float32:
    """Log factor of the error bars of a horizon, as its own forecasts have it so far."""
    own = ahead.scored.get(horizon)
    return np.float32(0 if own is None else quantile(own.spread) + own.factor)


def quantile(spread: NDArray[Any]) -> float:
    """Log of what errors are within, over 1.96 std. One more is unlike the m known ones: 95 % + 5 % / (m + 1)."""
    total = float(spread.sum())
    if not total:
        return 0.0
    level = COVERED + (1 - COVERED) / (1 + total)
    within = np.cumsum(spread, dtype=np.float64)
    return LOWEST + WIDTH * float(np.interp(level * within[-1], np.append(0, within), np.arange(BINS + 1)))


def with_scores(
    ahead: Ahead, clock: int, horizons: Sequence[int], found: Sequence[tuple[Any, Any, Any, Any]], entries: int
) -> Ahead:
    """With what `compared` has found for these horizons; what was due by now is dropped."""
    table = dict(ahead.scored)
    for horizon, (gram, excess, spread, beyond) in zip(horizons, found, strict=True):
        before = table.get(horizon, Scored(np.zeros((len(CANDIDATES),) * 2, np.float32)))
        worth = _interval(horizon, entries) / horizon  # of one forecast, in independent ones
        kept, worth = np.float32(1 - worth / MEMORY), min(worth, 1.0)
        table[horizon] = Scored(
            kept * before.gram + np.asarray(gram),
            np.asarray(kept * before.spread + worth * np.asarray(spread), np.float32),
            # In files of earlier versions f was all there was.
            before.factor * bool(before.spread.any()) + FACTOR_STEP * (float(beyond) - (1 - COVERED)),
            before.count + 1,
            float(kept) * before.excess + worth * float(excess),
        )
    table = {horizon: one for horizon, one in table.items() if horizon in LADDER or horizon in ahead.pending}
    left = {horizon: tuple(one for one in several if one.due > clock) for horizon, several in ahead.pending.items()}
    return replace(ahead, pending={horizon: several for horizon, several in left.items() if several}, scored=table)


def asked_now(season: Season) -> list[int]:
    """Horizons at which forecasts are made after this slice."""
    all_horizons = sorted({*LADDER, *season.periods[:1]})
    return [one for one in all_horizons if season.clock % _interval(one, season.entries) == 0]


def with_forecasts(ahead: Ahead, season: Season, horizons: list[int], means: Floats, std: Floats) -> Ahead:
    """With new forecasts (H, C, k), and the standard deviation of the next slice (k,); k as `of_sample` has it."""
    if ahead.period != period_in(season):
        ahead = Ahead(period=period_in(season))
    pending = dict(ahead.pending)
    for one, said in zip(horizons, means, strict=True):
        pending[one] = (*pending.get(one, ()), Pending(season.clock + one - 1, said, std))
    return replace(ahead, pending=pending)


def _interval(horizon: int, entries: int) -> int:
    """Slices between forecasts of a horizon; odd, so that they are not made at the same hour every day."""
    pending = min(max(PENDING_NUMBERS // _pending_numbers(entries), 1), MOST_PENDING)
    return 1 if horizon <= pending else -(-horizon // pending) | 1


def _pending_numbers(entries: int) -> int:
    """Numbers of one pending forecast at every horizon of the ladder."""
    return len(LADDER) * len(CANDIDATES) * min(entries, MOST_SCORED)


def look_ahead(
    ahead: Ahead, season: Season, core: Core, model: ModelCore, slices: int, scale: Any = LINEAR
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the next slices (slices, n), on the scale of the stream."""
    horizons = list(range(1, slices + 1))
    level, std, rows = map(np.asarray, _now(core.level, model, in_blocks(horizons)))
    means, std = _candidates(Outlook(horizons, level, std, np.asarray(core.last), rows), season)
    found, factors = np.empty((slices, season.entries), np.float32), np.empty((slices, 1), np.float32)
    farthest, period = max(ahead.scored, default=1), period_in(season)
    for horizon, said in zip(horizons, means, strict=True):
        gram, factor, share = nearby(ahead, horizon, period)
        found[horizon - 1] = _combined(gram, share, said, scale)
        # What nobody has scored yet is less certain, as of a random walk.
        factors[horizon - 1] = np.exp(factor) * np.sqrt(max(horizon / farthest, 1))
    return found, std * factors


def _candidates(
    expected: Outlook, season: Season, part: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> tuple[Floats, Floats]:
    """What is to come at each horizon (H, C, k), 1 being the next, and the standard deviation of the next (k,).

    Args:
        expected: From the last slice.
        season: After it.
        part: Those of the entries of a season that are asked for (n,) → (k,).
    """
    seasonal = [seasons.at(season, horizon - 1) for horizon in expected.horizons]
    parts = [(part(one), part(two), part(three)) for one, two, three in seasonal]
    return side_by_side(expected.level, expected.last, expected.rows, parts), expected.std


def in_blocks(horizons: list[int]) -> Floats:
    """Filled up to a size that programs are compiled for."""
    return np.array([*horizons, *[1] * (-len(horizons) % BLOCK)], np.float32)


def side_by_side(level: Floats, last: Floats, rows: Floats, seasonal: list[tuple[Any, Any, Any]]) -> Floats:
    """The candidates at each horizon (H, C, n); who knows nothing says what the level says."""
    found = np.empty((len(seasonal), len(CANDIDATES), level.size), np.float32)
    found[:, 0], found[:, 1], found[:, 2] = level, last, rows[: len(seasonal)]
    for position, three in enumerate(seasonal):
        found[position, 3:] = three
    return np.where(np.isfinite(found), found, level)


def nearby(ahead: Ahead, horizon: int, period: int = 0) -> Learned:
    """What forecasts of horizons like this one have taught; without any the last answer is half of what is said."""
    gram, spread = np.eye(len(CANDIDATES), dtype=np.float32) * 1e-6, np.zeros(BINS)
    factor = excess = total = nearest = 0.0
    for other, one in sorted(ahead.scored.items()):  # rounding depends on the order
        near = 2.0 ** (-NEARNESS * _distance(horizon, other, period))
        worth = near * min(one.count, MEMORY)
        # In units of the best: errors grow with the horizon, and the nearer one must not be outvoted for that.
        gram = gram + np.float32(worth / max(float(np.diag(one.gram).min()), 1e-12)) * one.gram
        spread, nearest = spread + near * one.spread, max(nearest, near)
        factor, excess, total = factor + worth * one.factor, excess + worth * one.excess, total + worth
    share = 1 / (1 + np.exp(-CONFIDENCE * excess / max(total, 1e-30)))
    width = quantile(spread / max(nearest, 1e-30)) + factor / max(total, 1e-30)
    return Learned(gram, np.float32(width), np.float32(share))


def _distance(one: int, other: int, period: int) -> float:
    """In factors of two: of the lengths of two horizons, and of their phases."""
    apart = abs(one - other) % period / period if period else 0.0
    unlike = period > 0 and (one % period == 0) != (other % period == 0)
    return float(abs(np.log2(one / other))) + CYCLE * min(apart, 1 - apart) + UNLIKE * unlike


@program()
def compared(
    values: Array,
    observed: Array,
    means: Array,
    std: Array,
    grams: Array,
    shares: Array,
    factors: Array,
    scale: Array,
) -> tuple[Array, Array, Array, Array]:
    """Of several forecasts (M, C, n) of a slice the errors of their candidates (M, C, C), and what these come to.

    Errors are in the units of the data and relative to the slice; their products are divided by the size of the median
    candidate's error, so that Σ ‖error‖ becomes small. Of squares those slices would decide at which everybody is far
    off, such as the hours of the night. Then by how much the combination did worse than the last answer (a logarithm),
    the histogram of its errors (M, BINS), and the fraction of the slice beyond its error bars with their factor.

    Everything that was observed counts, outliers too: they are part of what comes. Weights do not suffer from them, for
    an outlier is as far from one candidate as from all others, and the weights of all sum to one.

    A program because rounding in NumPy depends on where arrays lie in memory, and a saved tracker goes on bit for bit.
    """
    x, count = scales.plain(values, scale), observed.sum()
    size = jnp.maximum(jnp.where(observed, x**2, 0).sum(), 1e-12 * count)
    fraction = observed / jnp.maximum(count, 1)

    def one(means: Array, std: Array, gram: Array, share: Array, factor: Array) -> tuple[Array, Array, Array, Array]:
        said = scales.plain(means, scale)
        errors = jnp.where(observed, x - said, 0) * jax.lax.rsqrt(size)
        products = errors @ errors.T
        typical = jnp.sqrt(jnp.maximum(jnp.median(jnp.diag(products)), EXACT))
        weights = simplex_weights(gram)
        excess = (
            jnp.log(jnp.maximum(weights @ products @ weights, EXACT) / jnp.maximum(products[LAST, LAST], EXACT)) / 2
        )
        off = jnp.abs(values - scales.scaled(_mixed(weights, share) @ said, scale)) / std
        place = jnp.clip((jnp.log(off / 1.96) - LOWEST) / WIDTH, 0, BINS - 1)
        spread = jnp.zeros(BINS).at[jnp.where(observed, place, 0).astype(jnp.int32)].add(fraction)
        beyond = (fraction * (off > 1.96 * jnp.exp(factor))).sum()
        return products / typical, excess, spread, beyond

    return jax.vmap(one)(means, std, grams, shares, factors)


def _mixed(weights: Array, share: Array) -> Array:
    """Weights of the candidates (C,), with that share for the last answer alone."""
    return (1 - share) * weights + share * (jnp.arange(len(CANDIDATES)) == LAST)


@program()
def _combined(gram: Array, share: Array, means: Array, scale: Array) -> Array:
    """The candidates (C, n) as one (n,): averaged in the units of the data, on the scale of the stream."""
    return scales.scaled(_mixed(simplex_weights(gram), share) @ scales.plain(means, scale), scale)


def now(level: LevelState, model: ModelCore, horizons: Array) -> tuple[Array, Array, Array]:
    """Level and its standard deviation, of an observation (n,); what the rows of the CP model come to (H, n)."""
    nothing = jnp.zeros(level.count.shape)
    said = LEVEL.predict(level, Given(nothing, nothing, nothing))
    return said.mean, jnp.sqrt(said.variance + said.noise), rows_ahead(model, horizons)


_now = program()(now)
