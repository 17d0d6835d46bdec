"""Rows that come and go: the state of a stream whose modes have other rows than before, without learning anew.

Whatever is known of an entry moves with it. A new entry has been observed by nobody: to those who count what they have
seen it adds nothing, and to moments of all entries it is what the others are on average, so that what is said about the
others stays as it was, to rounding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from undertow.engine.state import State
from undertow.inputs.dense import Slice
from undertow.model.step import init_core
from undertow.tracker import neighbours, novelty
from undertow.tracker import season as seasons
from undertow.tracker.ahead import MOST_SCORED, Ahead, Pending
from undertow.tracker.core import Core, fresh_core
from undertow.tracker.novelty import Novelty
from undertow.tracker.season import Season
from undertow.tracker.state import Tracking, caught_up

NEW = -1
"""Place of a row that was not there before."""
Places = Sequence[NDArray[np.int64]]
"""For every mode, which of its former rows stands at each place; `NEW` for none."""


def rearranged(state: Tracking, places: Places) -> Tracking:
    """The state with these rows.

    Args:
        state: Of the stream so far; it stays as it is.
        places: For every mode.
    """
    state, shape = caught_up(state), tuple(map(len, places))
    flat = _entries(places, state.shape)
    return replace(
        state,
        shape=shape,
        core=replace(_core(state.core, flat), neighbours=neighbours.of_shape(state.core.neighbours, shape)),
        cps=tuple(replace(one, state=model(one.state, places)) for one in state.cps),
        recent=tuple(_slice(one, flat, shape) for one in state.recent),
        novelty=_novelty(state.novelty, flat),
        season=None if state.season is None else _season(state.season, flat),
        ahead=_ahead(state.ahead, math.prod(state.shape), flat),
        heard=tuple(
            np.where(where == NEW, state.seen, one[where]) for one, where in zip(state.heard, places, strict=False)
        ),
    )


def extended(before: Sequence[int], shape: Sequence[int]) -> Places:
    """Places of slices that get further rows at the ends of their modes.

    Raises:
        ValueError: Some mode would have less rows.
    """
    wanted = tuple(operator.index(size) for size in shape)
    if len(wanted) != len(before) or any(new < old for new, old in zip(wanted, before, strict=False)):
        raise ValueError(f"shape must be {tuple(before)}, or larger in some modes, got {wanted}.")
    return [np.concatenate([np.arange(old), np.full(new - old, NEW)]) for old, new in zip(before, wanted, strict=True)]


def emptied(shape: Sequence[int], rows: Sequence[Sequence[int]]) -> Places:
    """Places of slices some of whose rows, named for every mode, begin anew.

    Raises:
        ValueError: There is no such row.
    """
    if len(rows) != len(shape) or any(not 0 <= row < n for some, n in zip(rows, shape, strict=False) for row in some):
        raise ValueError(f"rows must be numbers for each mode of {tuple(shape)}, got {rows!r}.")
    places = [np.arange(size) for size in shape]
    for where, some in zip(places, rows, strict=True):
        where[list(some)] = NEW
    return places


def _entries(places: Places, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Where each entry stood, row by row; `NEW` for none."""
    flat, known = np.zeros((), np.int64), np.ones((), np.bool_)
    for where, size in zip(places, shape, strict=True):
        flat, known = flat[..., None] * size + where, known[..., None] & (where != NEW)
    return np.asarray(np.where(known, flat, NEW)).ravel()


def _moved(old: Any, fresh: Any, axis: int, where: NDArray[np.int64]) -> NDArray[Any]:
    """`fresh` with everything in it that `old` has, along an axis; other axes may have grown, too."""
    made, old = np.array(fresh), np.moveaxis(np.asarray(old), axis, 0)
    inside = np.moveaxis(made, axis, 0)
    common = tuple(slice(0, min(sizes)) for sizes in zip(inside.shape[1:], old.shape[1:], strict=True))
    kept = where != NEW
    inside[(kept, *common)] = old[(where[kept], *common)]
    return made


def _axis(shapes: Callable[[int], Any]) -> Any:
    """For every array which axis counts entries (or the rows of a mode); −1 for none.

    Args:
        shapes: The tree for some more of them than there are.
    """

    def first(one: Any, more: Any) -> int:
        return next((axis for axis, pair in enumerate(zip(one.shape, more.shape, strict=True)) if len({*pair}) > 1), -1)

    return jax.tree.map(first, *(jax.eval_shape(lambda more=more: shapes(more)) for more in (0, 1)))


def _core(core: Core, flat: NDArray[np.int64]) -> Core:
    """Predictors, calibration and events of all entries."""
    core, before, cps = replace(core, neighbours=None), core.last.shape[0], core.refits.shape[0]
    fresh = jax.tree.map(np.asarray, fresh_core(len(flat), cps))
    axes = _axis(lambda more: fresh_core(before + more, cps))

    def moved(old: Any, new: Any, axis: int) -> Any:
        return jnp.asarray(_moved(old, new, axis, flat)) if axis >= 0 else old

    made: Core = jax.tree.map(moved, core, fresh, axes)

    def usual(old: Any, new: Any) -> Any:
        """New entries as the others are on average."""
        return jnp.where(flat != NEW, new, old.mean(axis=-1, keepdims=True))

    others = tuple(
        replace(new, squares=usual(old.squares, new.squares), mean=usual(old.mean, new.mean))
        for old, new in zip(core.others, made.others, strict=True)
    )
    return replace(made, others=others, last=usual(core.last, made.last))


def model(state: State, places: Places) -> State:
    """A CP model: new rows of its factors are as their prior has them."""
    shape, settings = tuple(map(len, places)), state.config.settings(state.capacity)
    core, factors = state.core, state.core.factors
    rows = len(shape) * [jnp.diag(jnp.where(factors.active, 1 / factors.precision, 0))]
    for mode, where in enumerate(places):  # one after the other: an array may have several
        now = (*shape[:mode], *_core_shape(core)[mode:])
        after = (*shape[: mode + 1], *now[mode + 1 :])
        fresh = init_core(settings, after, None, state.slots)

        def grown(more: int, now: tuple[int, ...] = now, mode: int = mode) -> Any:
            return init_core(settings, (*now[:mode], now[mode] + more, *now[mode + 1 :]), None, state.slots)

        def moved(old: Any, new: Any, axis: int, where: NDArray[np.int64] = where) -> Any:
            return jnp.asarray(_moved(old, new, axis, where)) if axis >= 0 else old

        core = jax.tree.map(moved, core, fresh, _axis(grown))
        covariances = list(core.factors.covariances)
        covariances[mode] = jnp.where((where == NEW)[:, None, None], rows[mode], covariances[mode])
        core = replace(core, factors=replace(core.factors, covariances=tuple(covariances)))
    core = replace(core, outliers=_as_pooled(core.outliers, _entries(places, state.shape).reshape(shape) == NEW))
    added = math.prod(shape) - math.prod(state.shape)
    missing = tuple(int(count) + max(added, 0) for count in state.missing)
    return State(state.config, shape, state.unit, state.steps, jax.tree.map(jnp.copy, core), missing)


def _core_shape(core: Any) -> tuple[int, ...]:
    """Of a slice of a CP model, by its arrays."""
    return tuple(core.window.values.shape[1:])


def _as_pooled(outliers: Any, new: NDArray[np.bool_]) -> Any:
    """Noise of new entries as the pool of all has it."""
    shape = jnp.where(new, outliers.pool_shape, outliers.noise_shape)
    return replace(outliers, noise_shape=shape, noise_rate=jnp.where(new, outliers.pool_rate, outliers.noise_rate))


def _slice(one: Slice, flat: NDArray[np.int64], shape: tuple[int, ...]) -> Slice:
    """A recent slice; nobody has observed a new entry in it."""
    values, mask = (
        _moved(part.ravel(), np.zeros(len(flat), part.dtype), 0, flat).reshape(shape) for part in (one.values, one.mask)
    )
    return Slice(values, mask, one.filled)


def _novelty(known: Novelty | None, flat: NDArray[np.int64]) -> Novelty | None:
    """The whole past; that of new entries is empty."""
    fresh = novelty.start(len(flat))
    if known is None or fresh is None:
        return fresh

    def moved(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        return _moved(old, new, old.ndim - 1, flat)

    return Novelty(
        count=moved(known.count, fresh.count),
        mean=moved(known.mean, fresh.mean),
        variance=moved(known.variance, fresh.variance),
        averages=moved(known.averages, fresh.averages),
        squares=moved(known.squares, fresh.squares),
        newest=known.newest,
    )


def _season(season: Season, flat: NDArray[np.int64]) -> Season:
    """Earlier cycles; of new entries nothing is known of them."""
    entries = len(flat)

    def wide(rows: Any) -> Any:
        return _moved(rows, np.full((len(rows), entries), np.nan, np.float32), 1, flat)

    deviation, history, filled = season.deviation, season.history, season.filled
    if deviation is not None:
        fresh = seasons.no_deviation(entries, len(season.periods))
        deviation = jax.tree.map(lambda old, new: jnp.asarray(_moved(old, new, old.ndim - 1, flat)), deviation, fresh)
    if history is not None:
        past, history = seasons.ordered(season), seasons.start(entries).history
        filled = 0
    if history is not None:
        past = past[max(len(past) - len(history), 0) :]
        usual = np.broadcast_to(past.mean(axis=1, keepdims=True), (len(past), entries))
        filled = len(past)
        history[(season.clock - filled + np.arange(filled)) % len(history)] = _moved(past, usual, 1, flat)
    return replace(
        season,
        entries=entries,
        profiles=tuple(map(wide, season.profiles)),
        latest=None if season.latest is None else wide(season.latest),
        deviation=deviation,
        history=history,
        filled=filled,
    )


def _ahead(ahead: Ahead, before: int, flat: NDArray[np.int64]) -> Ahead:
    """Forecasts that are pending; dropped where they are those of a sample of entries."""
    if max(before, len(flat)) > MOST_SCORED:
        return replace(ahead, pending={})

    def wide(said: Any) -> Any:
        usual = np.broadcast_to(said.mean(axis=-1, keepdims=True), (*said.shape[:-1], len(flat)))
        return _moved(said, usual, said.ndim - 1, flat)

    return replace(
        ahead,
        pending={
            horizon: tuple(Pending(one.due, wide(one.means), wide(one.std)) for one in several)
            for horizon, several in ahead.pending.items()
        },
    )
