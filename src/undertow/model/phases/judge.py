"""Moves that the ELBO judges: prune components, add candidates, shrink the noise.

All go through one loop, whose first turn tries nothing, so that the outlier update and the bound are one piece of
program each. What is left when nothing more is tried is the ELBO of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model import elbo
from undertow.model.control import Progress, adapt_due, sweep_limit
from undertow.model.defaults import ELBO_MARGIN, MAX_ADDED, SHRINK_SWEEPS
from undertow.model.factors import discounted, rank
from undertow.model.factors.rows import temporal_weights
from undertow.model.flow import either, only_if, repeat, where
from undertow.model.level import divergence
from undertow.model.noise.models import outlier_model
from undertow.model.phases.candidate import Candidate, CandidateFit, added
from undertow.model.settings import Settings
from undertow.model.types import Factors, KnownRows, OutlierState, Window, over_slice

NOTHING, CANDIDATE, LESS_NOISE, DONE = range(4)
"""What a turn tries."""


@register_dataclass
@dataclass(frozen=True)
class Trial:
    """What one turn hands on to the next.

    Attributes:
        factors: With the components added so far.
        outliers: Updated for the residuals that they leave.
        residual: y − m̄ − x̄ of the window (W, I_1, …, I_N).
        variance: Var x + Var m of the window.
        elbo: The outlier model's part of the bound.
        tries: What is tried next.
        added: Components added so far.
    """

    factors: Factors
    outliers: OutlierState
    residual: Array
    variance: Array
    elbo: Array
    tries: Array
    added: Array


def judge(settings: Settings, window: Window, progress: Progress) -> Progress:
    """Prune and add components where it is time to; if none was, try less noise where it is too wide."""
    slice_weights = window.slice_weights(settings.forgetting)
    time_weights = temporal_weights(settings, slice_weights)
    adapting = adapt_due(settings, progress)
    (factors, residual, variance, rows), pruned = _prune(
        settings, window, progress, slice_weights, time_weights, adapting
    )
    zero = jnp.asarray(0, jnp.int32)
    start = Trial(factors, progress.outliers, residual, variance, jnp.zeros_like(rows), zero + NOTHING, zero)
    end = _try(settings, window, start, slice_weights, time_weights, adapting, pruned, progress.known)
    changed = pruned + end.added > 0
    bound = rows + end.elbo
    if progress.level is not None:
        bound -= divergence(progress.level, window)
    if end.factors.discounted is not None:
        bound += discounted.elbo(end.factors, end.factors.discounted)
    return replace(
        progress,
        factors=end.factors,
        outliers=end.outliers,
        residual=end.residual,
        variance=end.variance,
        moving=where(adapting, changed, progress.moving),
        sweep_limit=sweep_limit(settings, progress.warm, progress.iterations),
        rounds=progress.rounds + changed,
        adapting=changed,
        closed=~changed,
        elbo=bound,
    )


def _prune(
    settings: Settings, window: Window, progress: Progress, slice_weights: Array, time_weights: Array, adapting: Array
) -> tuple[tuple[Factors, Array, Array, Array], Array]:
    """Components pruned as long as the ELBO gains, with residual, variance and `elbo.low_rank`; how many."""
    weights, _ = outlier_model(settings).weights_and_targets(progress.outliers, window, slice_weights)
    prior, entry_index = settings.precision_prior, window.entry_index
    Carry = tuple[tuple[Factors, Array, Array, Array], Array]

    def turn(carry: Carry) -> tuple[Carry, Array]:
        now, first = carry
        now, pruned = rank.prune_smallest(*now, weights, time_weights, prior, entry_index, first, progress.known)
        return (now, jnp.asarray(False)), where(first, adapting, pruned)

    rows = jnp.zeros((), progress.residual.dtype)
    start = ((progress.factors, progress.residual, progress.variance, rows), jnp.asarray(True))
    (end, _), turns = repeat(turn, start, settings.max_rank + 1)
    return end, turns - adapting


def _try(
    settings: Settings,
    window: Window,
    start: Trial,
    slice_weights: Array,
    time_weights: Array,
    adapting: Array,
    pruned: Array,
    known: KnownRows,
) -> Trial:
    """Nothing first; then candidates as long as the ELBO gains; less noise last, if nothing has changed."""
    model, entry_index = outlier_model(settings), window.entry_index
    free = settings.max_rank - start.factors.active.sum(dtype=jnp.int32)
    most = where(adapting, jnp.minimum(MAX_ADDED, free), 0)
    count = slice_weights @ over_slice(window.mask.astype(slice_weights.dtype))

    def fitted(now: Trial) -> Candidate:
        weights = model.candidate_weights(now.outliers, window, slice_weights)
        energy = (weights * (now.residual**2 + now.variance)).sum()
        prior = settings.precision_prior
        return CandidateFit(weights, now.residual, energy, count, time_weights, prior, entry_index, known).fitted()

    def no_candidate(now: Trial) -> Candidate:
        none: Candidate = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(fitted, now))
        return none

    def turn(now: Trial) -> Trial:
        adds, shrinks = now.tries == CANDIDATE, now.tries == LESS_NOISE
        # Of many models together, these run only if one of them needs them.
        candidate = only_if(adds, lambda _: fitted(now), no_candidate(now))
        factor = only_if(
            shrinks,
            lambda _: model.median_noise(now.outliers, window, now.residual, now.variance),
            jnp.ones_like(now.elbo),
        )
        nothing = jnp.zeros((), now.residual.dtype)  # of residual and variance only E r² is read
        square = either(
            adds,
            lambda: candidate.square_left(now.residual, now.variance, entry_index),
            lambda: now.residual**2 + now.variance,
        )
        # Nothing gets an update too, so that what the outlier model gains alone is not attributed to a candidate.
        outliers = lax.fori_loop(
            0,
            where(shrinks, SHRINK_SWEEPS, where(adds | adapting, 1, 0)),
            lambda _, state: model.update(settings, state, window, slice_weights, nothing, square),
            model.scaled_noise(now.outliers, factor),
        )
        after = elbo.outlier_model(settings, outliers, window, slice_weights, nothing, square)
        margin = where(adds, ELBO_MARGIN * float(np.finfo(after.dtype).eps) * jnp.abs(after), 0)
        gains = (now.tries == NOTHING) | ((factor > 0) & (after + candidate.elbo > now.elbo + margin))

        def accepted(now: Trial) -> Trial:
            factors, residual, variance = only_if(adds, grown, (now.factors, now.residual, now.variance))
            return Trial(factors, outliers, residual, variance, after, now.tries, now.added + adds)

        def grown(carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
            factors, residual, variance = carry
            slot = jnp.argmin(factors.active.astype(after.dtype))
            return added(factors, candidate, slot), *candidate.left(residual, variance, entry_index)

        now = only_if(gains, accepted, now)
        wide = (pruned + now.added == 0) & model.too_wide(settings, now.outliers, window, now.residual, now.variance)
        last = where(wide & ~shrinks, LESS_NOISE, DONE)
        more = ~shrinks & gains & (now.added < most)
        return replace(now, tries=where(more, CANDIDATE, last).astype(jnp.int32))

    end: Trial = lax.while_loop(lambda now: now.tries != DONE, turn, start)
    return end
