"""Control of a step: what the phases hand on to each other, and when to sweep, to adapt the rank, and to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model.defaults import (
    MAX_ROUNDS,
    NOISE_FALLING,
    OVER_RELAXATION,
    RELAXATION_AFTER,
    RESOLUTION,
    SWEEPS_PER_ROUND,
)
from undertow.model.factors import layout
from undertow.model.factors.layout import Summary
from undertow.model.flow import where
from undertow.model.noise.models import outlier_model
from undertow.model.noise.pooled import noise_floor
from undertow.model.settings import Settings
from undertow.model.types import Factors, KnownRows, Level, OutlierState, Window


@register_dataclass
@dataclass(frozen=True)
class Progress:
    """What the phases of one step hand on to each other.

    Attributes:
        factors: As they are now; so are outliers and level.
        outliers: State of the outlier model.
        level: None where there is none.
        residual: y − m̄ − x̄ of the window (W, I_1, …, I_N).
        variance: Var x + Var m of the window.
        known: Rows of the modes in which something was observed.
        newest: m̄ + x̄ of the newest slice after the last sweep (I_1, …, I_N), or what it is made of.
        misfit: Whether the slice, as it was initialised, did not fit.
        too_large: Whether some of its entries are too large to compute with.
        warm: Whether few sweeps are enough: the window is full and the slice fits.
        moving: Whether another sweep is needed.
        iterations: Sweeps so far.
        sweep_limit: Most sweeps at the end of this round.
        rounds: How often components were added or pruned.
        adapting: Whether components may be added or pruned after these sweeps: at first, and as long as some were.
        failed: Rows that could not be solved.
        closed: Whether nothing is left to be done.
        elbo: The bound, once it is closed.
    """

    factors: Factors
    outliers: OutlierState
    level: Level | None
    residual: Array
    variance: Array
    known: KnownRows
    newest: Summary
    misfit: Array
    too_large: Array
    warm: Array
    moving: Array
    iterations: Array
    sweep_limit: Array
    rounds: Array
    adapting: Array
    failed: Array
    closed: Array
    elbo: Array


def sweep_limit(settings: Settings, warm: Array, iterations: Array) -> Array:
    """Most sweeps at the end of a round that begins now."""
    most = jnp.asarray(settings.max_iterations, jnp.int32)
    return where(warm, jnp.minimum(iterations + SWEEPS_PER_ROUND, most), most)


def relaxation(settings: Settings, progress: Progress) -> Array:
    """β of the next sweep: what still moves after a few sweeps converges slowly; 0 in the paper's model."""
    slow = (progress.iterations >= RELAXATION_AFTER) & (settings.start == "warm")
    return where(slow, OVER_RELAXATION, 0).astype(progress.residual.dtype)


def still_moving(settings: Settings, progress: Progress, outliers: OutlierState, newest: Summary) -> Array:
    """Whether a sweep that led from `progress` to these has not converged."""
    model = outlier_model(settings)
    # Moves below the rounding of the arithmetic say nothing, however small the noise.
    dtype = progress.residual.dtype
    resolution = RESOLUTION * float(np.finfo(dtype).eps) * layout.size_of(newest)
    # Entries of rows in which nothing was observed do not move, and do not count.
    known = math.prod(rows.mean(dtype=dtype) for rows in progress.known)
    least = jnp.maximum(settings.tolerance * jnp.sqrt(known * model.typical_noise(outliers)), resolution)
    moving = layout.distance(newest, progress.newest) > least
    # Large noise hides moves: as long as it falls, nothing has converged.
    noise = model.typical_noise(outliers)
    falling = noise < (1 - NOISE_FALLING) * model.typical_noise(progress.outliers)
    return moving | falling & (noise > 2 * noise_floor(dtype))


def sweep_due(progress: Progress) -> Array:
    """Whether the next phase is a sweep."""
    return progress.moving & (progress.iterations < progress.sweep_limit)


def adapt_due(settings: Settings, progress: Progress) -> Array:
    """Whether the next phase is pruning and adding components."""
    ready = progress.adapting & ~sweep_due(progress) & (progress.warm | ~progress.moving)
    # Not at the very end: a new component must have been swept at least once.
    return ready & (progress.rounds < MAX_ROUNDS) & (progress.iterations < settings.max_iterations)


def judge_due(settings: Settings, window: Window, progress: Progress) -> Array:
    """Whether, after the last sweep, there is anything to try: components, or less noise."""
    model = outlier_model(settings)
    wide = model.too_wide(settings, progress.outliers, window, progress.residual, progress.variance)
    return ~progress.closed & (adapt_due(settings, progress) | wide)
