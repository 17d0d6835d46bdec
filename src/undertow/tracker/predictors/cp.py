"""CP: the low-rank model of `undertow.model` as a predictor.

Judged by what it says about each observed entry from all others of its slice, with the factors as they were before:
given the factors a slice is a linear regression on its temporal row c, for which the residual without an entry follows
from its leverage. The prior of c is an AR(1) process per component, fitted to the rows of the window, so that nearly
empty slices follow the past.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.config import Config, make_config
from undertow.engine.capacity import (
    FEWEST_SLOTS,
    FREE_SLOTS,
    missing_capacity,
    resized,
    separable,
    with_fitting_slots,
)
from undertow.engine.memory import check_memory
from undertow.engine.slots import LARGE_WINDOW, slots
from undertow.engine.state import State, blank
from undertow.model import level as levels
from undertow.model.linalg.symmetric import inverse
from undertow.model.phases.infer import infer
from undertow.model.report import Report
from undertow.model.settings import Settings, Slots
from undertow.model.step import step
from undertow.model.types import Core, Factors, Window
from undertow.programs.program import program
from undertow.programs.runtime import MIDDLING
from undertow.tracker.predictors.base import Prediction

LARGE_SLICE = 12_000
"""Entries from which on one quick CP model has to do."""
LARGEST_RANK, LARGEST_RANK_LARGE = 64, 32
"""Components of a small slice, and of a large one."""
WORTH_MORE = 0.02
"""Log ratio of the errors of a large slice without and with the weaker half of the components, from which on more of
them are worth their time: .07 to .24 on a breathing heart (PINCAT), .005 at most where a camera stands still."""
LASTING = 0.999
"""Of what a temporal row keeps, from which on it counts as a random walk."""
LEAST_STEP = 0.01
"""Usual steps that a slice which comes again is worth at least: its row need not be the same to the last digit."""
GROWTH_INTERVAL = 5
"""Slices between looks at whether all slots for components are in use."""


def configs(shape: tuple[int, ...]) -> tuple[Config, ...]:
    """Settings of the CP models that suit slices of this size.

    The first is robust; the others take every observation that was not withheld as it is: one with the memory of the
    first, which suits sensors, and one with a short memory, which suits factors that drift quickly. For large slices
    there is one, with discounted statistics of what has left its window and a level of every entry: pictures are not of
    low rank.
    """
    plain: dict[str, Any] = {"robust": False, "noise": "shared"}
    if math.prod(shape) > LARGE_SLICE:
        quick: dict[str, Any] = {"memory": "recursive", "window": 10, "forgetting": 0.99, "max_rank": 16, "level": True}
        return (make_config(**plain, **quick),)
    size = make_config().sized(shape).max_rank
    short: dict[str, Any] = {"window": 10, "forgetting": 0.85}
    return tuple(make_config(max_rank=size, **settings) for settings in ({}, plain, {**plain, **short}))


def largest_rank(shape: tuple[int, ...]) -> int:
    """The most components that a CP model of such slices may have."""
    return LARGEST_RANK_LARGE if math.prod(shape) > LARGE_SLICE else LARGEST_RANK


@dataclass(frozen=True)
class CP:
    """One CP model: a value, as `undertow.State` is."""

    state: State
    rank: Any = 0

    @classmethod
    def new(cls, config: Config, shape: tuple[int, ...], room: Slots | None = None) -> CP:
        """Nothing seen; slices come in units of the stream. `room` is for what arrays have slots, if not as usual."""
        check_memory(config, shape)
        return cls(State(config, shape, 1.0, 0, blank(config, shape, room=room or _slots(config, shape))))

    def predict(self, values: Array, mask: Array, steps: float = 1.0) -> Regression:
        """The slice, that many usual steps after the last, as a regression on its temporal row, for `left_out`."""
        made: Regression = regression(self.state.core, values, mask, self.state.settings, np.float32(steps))
        return made

    def learn(self, values: Array, mask: Array, missing: Any) -> tuple[CP, Report]:
        """The model after the slice, and its report.

        Args:
            values: Of the slice, in its shape.
            mask: Entries that are used.
            missing: Number of those that are not; it may still be computed.
        """
        state = with_fitting_slots(self.state)
        if separable(state.config):
            state = replace(state, missing=(*state.missing, missing)[-state.config.window :])
        core, report = step(state.core, values, mask, state.settings, missing_capacity(state), None)
        return CP(replace(state, steps=state.steps + 1, core=core), report.rank), report

    def prepare(self) -> None:
        """Load or compile what `learn` runs, for the first slice and most of the others."""
        state = self.state
        nothing = np.zeros(state.shape, state.config.dtype)
        step.prepare(state.core, nothing, nothing > 0, state.settings, missing_capacity(state), None)

    def full(self) -> bool:
        """Whether all slots for components are in use."""
        return int(self.rank) >= self.state.capacity

    def grown(self) -> CP:
        """With twice the slots for components where all are in use; of large slices only if that is worth the time."""
        state, full = self.state, self.state.config.max_rank
        assert full is not None  # sized by the first slice
        if not self.full():
            return self
        if state.capacity < full:
            return self.with_slots(full)
        largest, large = largest_rank(state.shape), math.prod(state.shape) > LARGE_SLICE
        if full >= largest or (large and self.weaker_half() < WORTH_MORE):
            return self
        size = min(2 * full, largest)
        config, wider = replace(state.config, max_rank=size), resized(state.core.factors, size)
        return replace(self, state=replace(state, config=config, core=replace(state.core, factors=wider)))

    def weaker_half(self) -> float:
        """What the weaker half of the components is worth: log ratio of the errors without and with it."""
        values, mask = _newest(self.state.core.window)
        return float(_weaker_half(self.predict(values, mask), mask))

    def fitting(self) -> CP:
        """With half the slots where that leaves some free, and with all of them once none is."""
        full, rank_now = self.state.config.max_rank, int(self.rank)
        assert full is not None  # sized by the first slice
        few = max(full // 2, FEWEST_SLOTS)
        if self.state.capacity == full and rank_now + FREE_SLOTS <= few < full:
            return self.with_slots(few)
        return self.with_slots(full) if rank_now >= self.state.capacity < full else self

    def with_slots(self, slots: int) -> CP:
        """With that many; active components keep theirs."""
        state = self.state
        room = _slots(state.config, state.shape).rank if slots == state.config.max_rank else slots
        return replace(self, state=replace(state, core=replace(state.core, factors=resized(state.core.factors, room))))


def _slots(config: Config, shape: tuple[int, ...]) -> Slots:
    """Of small slices, as many for all models of a tracker: they share programs."""
    own, longest = slots(config, shape), make_config().window
    small = own.window < longest and longest * math.prod(shape) < LARGE_WINDOW and config.memory == "window"
    return own._replace(window=longest) if small else own


@program()
def _newest(window: Window) -> tuple[Array, Array]:
    """The last slice that was learned, flat (n,)."""
    return window.values[window.newest].ravel(), window.mask[window.newest].ravel() > 0


@program()
def _weaker_half(given: Regression, mask: Array) -> Array:
    """½ log(1 + Σ s_r / n) over the weaker half of the components, n being the number of observed entries.

    s_r is the signal of a component over the noise, (Σ_i d_ir² / noise_i) / precision_r: what its coefficient changes
    from slice to slice, not what it is. A component that stays as it was is known without the slice.
    """
    trust = mask * given.trust / (given.noise + given.level_variance)
    signal = jnp.sort((trust[:, None] * given.design**2).sum(0) / given.precision)
    return 0.5 * jnp.log1p(signal[: signal.size // 2].sum() / jnp.maximum(mask.sum(), 1))


@register_dataclass
@dataclass(frozen=True)
class Regression:
    """A slice as a linear regression on its temporal row c ~ N(centre, 1 / precision), with the factors as they are.

    Attributes:
        design: Products of the rows of all modes (n, R).
        centre: (R,).
        precision: (R,).
        level: Mean of every entry without the low rank (n,).
        level_variance: (n,).
        noise: Variance of the noise (n,).
        trust: Fraction of its precision that the model itself leaves every entry (n,).
    """

    design: Array
    centre: Array
    precision: Array
    level: Array
    level_variance: Array
    noise: Array
    trust: Array


@program(small=MIDDLING)
def regression(core: Core, values: Array, mask: Array, settings: Settings, steps: Array | float = 1.0) -> Regression:
    """The regression of a slice, flat (n,), as this model has it."""
    shape = core.window.values.shape[1:]
    return of_report(core, infer(core, values.reshape(shape), mask.reshape(shape), settings), steps)


def of_report(core: Core, report: Report, steps: Array | float = 1.0) -> Regression:
    """The regression of the slice that is reported, that many usual steps after the last."""
    centre, precision = _row_prior(core.factors.row_means, core.window, core.factors.precision, steps)
    level, level_variance = _level(core, report.low_rank.ravel())
    noise = report.noise_variance.ravel() + 1e-12
    # As the stream usually is: a slice that does not fit must not pass for a noisy one.
    known = core.window.mask.any(axis=0).ravel()
    mean = jnp.where(known, noise, 0).sum() / jnp.maximum(known.sum(), 1)
    noise = noise * jnp.where(mean > 0, jnp.clip(report.usual_noise / jnp.maximum(mean, 1e-12), 1e-6, 1), 1)
    trust = 1 - report.outlier_probability.ravel()
    return Regression(_design(core.factors), centre, precision, level, level_variance, noise, trust)


def left_out(given: Regression, values: Array, weights: Array) -> Prediction:
    """Every observed entry as the factors and the other entries of the slice have it; flat (n,).

    Args:
        given: The slice as a regression.
        values: (n,).
        weights: Of every observation in [0, 1], 0 where there is none (n,).
    """
    design, y = given.design, values - given.level
    trust = weights * given.trust / (given.noise + given.level_variance)
    gram = design.T @ (trust[:, None] * design) + jnp.diag(given.precision)
    # In units of its diagonal, or single precision would not do where sizes differ by orders of magnitude.
    unit = jax.lax.rsqrt(jnp.diag(gram))
    scaled, _ = inverse((gram * unit * unit[:, None] + 1e-6 * jnp.eye(unit.size))[None])
    covariance = scaled[0] * unit * unit[:, None]
    row = covariance @ (design.T @ (trust * y) + given.precision * given.centre)
    fit, variance = design @ row, ((design @ covariance) * design).sum(1)
    left = 1 - jnp.minimum(variance * trust, 0.999)
    mean = jnp.where(trust > 0, y - (y - fit) / left, fit)
    variance = jnp.where(trust > 0, variance / left, variance)
    return Prediction(mean + given.level, variance + given.level_variance, given.noise)


def left_out_of_all(given: tuple[Regression, ...], values: Array, weights: Array) -> list[Prediction]:
    """The same by several models: as one piece of program where their shapes are alike."""
    if len({one.design.shape for one in given}) != 1:
        return [left_out(one, values, weights) for one in given]
    together: Regression = jax.tree.map(lambda *parts: jnp.stack(parts), *given)
    return [jax.vmap(left_out, (0, None, None))(together, values, weights)]


def _level(core: Core, like: Array) -> tuple[Array, Array]:
    """Mean and variance of the level of the next slice (n,); 0 where the model has none."""
    if core.level is None:
        return jnp.zeros_like(like), jnp.zeros_like(like)
    coming = levels.coming(core.level, core.window)
    return coming.mean.ravel(), coming.variance.ravel()


def rows_ahead(core: Core, horizons: Array) -> Array:
    """What the low rank comes to at each horizon (H, n), its temporal rows left to their own dynamics.

    AR(1) processes around their means over the window, c̄ + aʰ (c − c̄): far ahead the slice is as it usually was, not 0.
    """
    ordered, known = _ordered(core.factors.row_means, core.window)
    mean = jnp.where(known, ordered, 0).sum(0) / jnp.maximum(known.sum(), 1)
    pull, _ = _autoregression(ordered - mean, known)
    rows = mean + (ordered[0] - mean) * pull ** horizons[:, None]
    return rows @ _design(core.factors).T


def _design(factors: Factors) -> Array:
    """Products of the rows of all modes (n, R)."""
    design = jnp.ones((1, factors.active.shape[0]), factors.row_means.dtype)
    for means in factors.means:
        design = (design[:, None, :] * means[None, :, :]).reshape(-1, design.shape[1])
    return design


def _row_prior(rows: Array, window: Window, precision: Array, steps: Array | float = 1.0) -> tuple[Array, Array]:
    """Mean and precision of the next temporal row (R,): an AR(1) process per component, fitted to the window.

    After s steps: aˢ times the last row, with variance q (1 − a²ˢ) / (1 − a²).
    """
    last, pull, step_variance = _dynamics(rows, window)
    enough = window.filled > 2
    kept = pull**steps
    worth = jnp.where(pull > LASTING, steps, (1 - kept**2) / jnp.maximum(1 - pull**2, 1 - LASTING**2))
    worth = jnp.maximum(worth, LEAST_STEP)
    centre = jnp.where(enough & (window.filled > 0), kept * last, 0)
    return centre, jnp.where(enough, 1 / (step_variance * worth), jnp.maximum(precision, 1e-6))


def _dynamics(rows: Array, window: Window) -> tuple[Array, Array, Array]:
    """The last temporal row, what it keeps from slice to slice, and the variance of the rest (R,) each."""
    ordered, known = _ordered(rows, window)
    return ordered[0], *_autoregression(ordered, known)


def _ordered(rows: Array, window: Window) -> tuple[Array, Array]:
    """Temporal rows, the newest first (W, R), and which of them there are (W, 1)."""
    return rows[window.by_age()], (jnp.arange(len(rows)) < window.filled)[:, None]


def _autoregression(ordered: Array, known: Array) -> tuple[Array, Array]:
    """What rows keep from slice to slice, and the variance of the rest (R,) each."""
    pairs = known[1:]
    now, before = jnp.where(pairs, ordered[:-1], 0), jnp.where(pairs, ordered[1:], 0)
    pull = jnp.clip((now * before).sum(0) / jnp.maximum((before**2).sum(0), 1e-12), 0, 1)
    count = jnp.maximum(pairs.sum(), 1)
    return pull, ((now - pull * before) ** 2).sum(0) / count + 1e-6
