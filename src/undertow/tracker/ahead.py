"""Forecasts of several slices ahead: candidates, weighed and calibrated by how earlier forecasts turned out.

For every horizon h of a ladder (1, 2, 4, …, and the period of the season) a few forecasts are pending at a time. When
its slice arrives, the errors of its candidates are added to a Gram matrix of that horizon. Forecasts combine the
candidates by the same non-negative least squares as the tracker does (`combination`), on the errors of horizons near
theirs; their standard deviation is that of one step times a factor f, log f ← log f + η (share beyond ±1.96 std − 5 %),
so that in the long run 95 % of what comes lies within, however uneven slices are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.model.types import Core as ModelCore
from undertow.programs.program import program
from undertow.tracker import scales
from undertow.tracker import season as seasons
from undertow.tracker.combination import simplex_weights
from undertow.tracker.predictors.base import Given
from undertow.tracker.predictors.cp import rows_ahead
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.scales import LINEAR
from undertow.tracker.season import LEVEL, Season
from undertow.tracker.step import Core

LADDER = tuple(2**power for power in range(10))
"""Horizons at which forecasts are scored."""
CANDIDATES = ("level", "last", "cp", "season", "profile", "latest")
"""The local level, the last answer, the rows of the CP model; the season with its deviation of now and without, and as
it was in the last cycle."""
MEMORY = 10
"""Horizons after which errors are forgotten: what is said of tomorrow is judged by days, at all their hours."""
COVERED = 0.95
"""Of what comes, within the error bars."""
FIRST_SCORES, FACTOR_STEP = 3, 0.3
"""Forecasts from whose quantiles the factor of error bars begins, and η: then it follows the share beyond them."""
BLOCK = 16
"""Horizons are computed in blocks of this size, so that few programs are compiled."""
TOGETHER = 4
"""Forecasts are scored in multiples of this number, so that few programs are compiled."""
MOST_PENDING, PENDING_NUMBERS = 8, 4_000_000
"""Forecasts of a horizon that are pending at a time, at most, and the numbers that all of them may hold."""
NEARNESS = 3.0
"""How fast the errors of other horizons lose their worth: by 2 to this power for every factor of two."""
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
    """How forecasts of one horizon turned out: errors of the candidates (C, C), log factor of error bars, how many."""

    gram: Floats
    factor: float = 0.0
    count: int = 0


@dataclass(frozen=True)
class Ahead:
    """Forecasts that are pending, and how earlier ones turned out, by horizon."""

    pending: dict[int, tuple[Pending, ...]] = field(default_factory=dict)
    scored: dict[int, Scored] = field(default_factory=dict)


def most_bytes(entries: int) -> int:
    """The most memory that pending forecasts take."""
    return 0 if entries > LARGEST_SLICE else 4 * min(PENDING_NUMBERS, _pending_numbers(entries) * MOST_PENDING)


def follow(
    ahead: Ahead, season: Season, core: Core, model: ModelCore, values: Any, learned: Any, scale: Any = LINEAR
) -> Ahead:
    """After a slice: forecasts of it are scored, new ones are made.

    Args:
        ahead: Before the slice.
        season: After it.
        core: After it.
        model: The CP model that forecasts, after it.
        values: Of the slice, on the scale of the stream (n,).
        learned: Weight of each of these for those who learn (n,).
        scale: Of the stream, its number.
    """
    if season.entries > LARGEST_SLICE:
        return ahead
    values, trusted = (of_sample(np.asarray(one)) for one in (values, learned > 0.5))
    ahead = scored(ahead, season.clock - 1, values, trusted, scale)
    horizons = asked_now(season)
    return with_forecasts(ahead, season, horizons, *_candidates(core, model, season, horizons))


def scored(ahead: Ahead, clock: int, values: Floats, trusted: NDArray[np.bool_], scale: Any) -> Ahead:
    """With forecasts of this slice compared with what was observed; those of slices that never came are dropped."""
    due = due_at(ahead, clock) if trusted.any() else []
    if not due:
        return with_scores(ahead, clock, [], [], values.size)
    asked = [due[min(position, len(due) - 1)] for position in range(-(-len(due) // TOGETHER) * TOGETHER)]
    means, std, grams, factors = (
        np.stack(part)
        for part in zip(
            *((one.means, one.std, nearby(ahead, horizon)[0], factor_of(ahead, horizon)) for horizon, one in asked),
            strict=True,
        )
    )
    parts = compared(values, trusted, means, std, grams, factors, scale)
    found = zip(*(np.asarray(part) for part in parts), strict=True)
    return with_scores(ahead, clock, [horizon for horizon, _ in due], list(found)[: len(due)], values.size)


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
    return np.float32(ahead.scored[horizon].factor if horizon in ahead.scored else 0)


def with_scores(
    ahead: Ahead, clock: int, horizons: Sequence[int], found: Sequence[tuple[Any, Any, Any]], entries: int
) -> Ahead:
    """With what `compared` has found for these horizons; what was due by now is dropped."""
    table = dict(ahead.scored)
    for horizon, (gram, needed, beyond) in zip(horizons, found, strict=True):
        before = table.get(horizon, Scored(np.zeros((len(CANDIDATES),) * 2, np.float32)))
        if before.count < FIRST_SCORES:
            factor = before.factor + (float(needed) - before.factor) / (before.count + 1)
        else:
            factor = before.factor + FACTOR_STEP * (float(beyond) - (1 - COVERED))
        kept = np.float32(1 - _interval(horizon, entries) / (MEMORY * horizon))
        table[horizon] = Scored(kept * before.gram + np.asarray(gram), factor, before.count + 1)
    table = {horizon: one for horizon, one in table.items() if horizon in LADDER or horizon in ahead.pending}
    left = {horizon: tuple(one for one in several if one.due > clock) for horizon, several in ahead.pending.items()}
    return Ahead({horizon: several for horizon, several in left.items() if several}, table)


def asked_now(season: Season) -> list[int]:
    """Horizons at which forecasts are made after this slice."""
    all_horizons = sorted({*LADDER, *season.periods[:1]})
    return [one for one in all_horizons if season.clock % _interval(one, season.entries) == 0]


def with_forecasts(ahead: Ahead, season: Season, horizons: list[int], means: Floats, std: Floats) -> Ahead:
    """With new forecasts (H, C, n), and the standard deviation of the next slice (n,)."""
    pending = dict(ahead.pending)
    for one, said in zip(horizons, means, strict=True):
        pending[one] = (*pending.get(one, ()), Pending(season.clock + one - 1, of_sample(said), of_sample(std)))
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
    means, std = _candidates(core, model, season, horizons)
    found, factors = np.empty((slices, season.entries), np.float32), np.empty((slices, 1), np.float32)
    farthest = max(ahead.scored, default=1)
    for horizon, said in zip(horizons, means, strict=True):
        gram, factor = nearby(ahead, horizon)
        found[horizon - 1] = _combined(gram, said, scale)
        # What nobody has scored yet is less certain, as of a random walk.
        factors[horizon - 1] = np.exp(factor) * np.sqrt(max(horizon / farthest, 1))
    return found, std * factors


def _candidates(core: Core, model: ModelCore, season: Season, horizons: list[int]) -> tuple[Floats, Floats]:
    """What is to come at each horizon (H, C, n), 1 being the next, and the standard deviation of the next (n,)."""
    level, std, rows = (np.asarray(part) for part in now(core.level, model, in_blocks(horizons)))
    seasonal = [seasons.at(season, horizon - 1) for horizon in horizons]
    return side_by_side(level, np.asarray(core.last), rows, seasonal), std


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


def nearby(ahead: Ahead, horizon: int) -> tuple[Floats, float]:
    """Errors of the candidates and log factor of error bars at a horizon, as those near it have them."""
    gram, factor, total = np.eye(len(CANDIDATES), dtype=np.float32) * 1e-6, 0.0, 0.0
    for other, one in sorted(ahead.scored.items()):  # rounding depends on the order
        worth = 2.0 ** (-NEARNESS * abs(np.log2(other / horizon))) * min(one.count, MEMORY)
        # In units of the best: errors grow with the horizon, and the nearer one must not be outvoted for that.
        gram = gram + np.float32(worth / max(float(np.diag(one.gram).min()), 1e-12)) * one.gram
        factor, total = factor + worth * one.factor, total + worth
    return gram, factor / total if total else 0.0


@program()
def compared(
    values: Array, trusted: Array, means: Array, std: Array, grams: Array, factors: Array, scale: Array
) -> tuple[Array, Array, Array]:
    """Of several forecasts (M, C, n) of a slice the errors of their candidates (M, C, C), and of their error bars (M,).

    Errors are in the units of the data and relative to the slice; their products are divided by the size of the median
    candidate's error, so that Σ ‖error‖ becomes small. Of squares those slices would decide at which everybody is far
    off, such as the hours of the night. Of error bars: the log factor that they needed, and the share of the slice
    beyond them with the log factors that they had.

    A program because rounding in NumPy depends on where arrays lie in memory, and a saved tracker goes on bit for bit.
    """
    x, count = scales.plain(values, scale), trusted.sum()
    size = jnp.maximum(jnp.where(trusted, x**2, 0).sum(), 1e-12 * count)
    # Below the k-th smallest of n lie k / (n + 1) of what is to come, not k / n.
    wanted = jnp.minimum(COVERED * (count + 1) / jnp.maximum(count, 1), 1)

    def one(means: Array, std: Array, gram: Array, factor: Array) -> tuple[Array, Array, Array]:
        said = scales.plain(means, scale)
        errors = jnp.where(trusted, x - said, 0) * jax.lax.rsqrt(size)
        products = errors @ errors.T
        typical = jnp.sqrt(jnp.maximum(jnp.median(jnp.diag(products)), EXACT))
        off = jnp.abs(values - scales.scaled(simplex_weights(gram) @ said, scale)) / std
        widest = jnp.nanquantile(jnp.where(trusted, off, jnp.nan), wanted)
        beyond = (trusted & (off > 1.96 * jnp.exp(factor))).sum() / jnp.maximum(count, 1)
        return products / typical, jnp.log(jnp.maximum(widest / 1.96, 0.1)), beyond

    return jax.vmap(one)(means, std, grams, factors)


@program()
def _combined(gram: Array, means: Array, scale: Array) -> Array:
    """The candidates (C, n) as one (n,): averaged in the units of the data, on the scale of the stream."""
    return scales.scaled(simplex_weights(gram) @ scales.plain(means, scale), scale)


@program()
def now(level: LevelState, model: ModelCore, horizons: Array) -> tuple[Array, Array, Array]:
    """Level and its standard deviation, of an observation (n,); what the rows of the CP model come to (H, n)."""
    nothing = jnp.zeros(level.count.shape)
    said = LEVEL.predict(level, Given(nothing, nothing, nothing))
    return said.mean, jnp.sqrt(said.variance + said.noise), rows_ahead(model, horizons)
