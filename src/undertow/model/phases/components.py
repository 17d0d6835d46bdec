"""Adapt the rank: prune components, then add candidates, each as long as the ELBO gains."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model import elbo
from undertow.model.control import Progress, sweep_limit
from undertow.model.defaults import ELBO_MARGIN, MAX_ADDED
from undertow.model.factors import rank
from undertow.model.factors.rows import temporal_weights
from undertow.model.flow import only_if, repeat
from undertow.model.noise.models import outlier_model
from undertow.model.phases.candidate import CandidateFit, added
from undertow.model.settings import Settings
from undertow.model.types import Factors, OutlierState, Window, over_slice


@register_dataclass
@dataclass(frozen=True)
class Growth:
    """What the addition of one candidate hands on to the next.

    Attributes:
        factors: With the components added so far.
        outliers: Updated for the residuals that they leave.
        residual: y − m̄ − x̄ of the window (W, I_1, …, I_N).
        variance: Var x + Var m of the window.
        elbo: The outlier model's part of the bound.
    """

    factors: Factors
    outliers: OutlierState
    residual: Array
    variance: Array
    elbo: Array


def adapt(settings: Settings, window: Window, progress: Progress) -> Progress:
    """Prune, then add components."""
    slice_weights = window.slice_weights(settings.forgetting)
    time_weights = temporal_weights(settings, slice_weights)
    pruned, n_pruned, count = _prune(settings, window, progress, slice_weights, time_weights)
    free = settings.max_rank - pruned.factors.active.sum()
    most = jnp.minimum(MAX_ADDED, free)

    def grown(state: tuple[Growth, Array]) -> tuple[Growth, Array]:
        return _grow(settings, window, state[0], slice_weights, time_weights, count, most)

    end, n_added = only_if(most > 0, grown, (pruned, jnp.zeros_like(n_pruned)))
    changed = n_pruned + n_added > 0
    return replace(
        progress,
        factors=end.factors,
        outliers=end.outliers,
        residual=end.residual,
        variance=end.variance,
        moving=changed,
        sweep_limit=sweep_limit(settings, progress.warm, progress.iterations),
        rounds=progress.rounds + changed,
        adapting=changed,
    )


def _prune(
    settings: Settings, window: Window, progress: Progress, slice_weights: Array, time_weights: Array
) -> tuple[Growth, Array, Array]:
    """Components pruned as long as the ELBO gains; how many; and Σ ω O of the window."""
    weights, _ = outlier_model(settings).weights_and_targets(progress.outliers, window, slice_weights)
    count = slice_weights @ over_slice(window.mask.astype(weights.dtype))
    prior, entry_index = settings.precision_prior, window.entry_index

    def prune(carry: tuple[Factors, Array, Array]) -> tuple[tuple[Factors, Array, Array], Array]:
        factors, residual, variance, made = rank.prune_smallest(*carry, weights, time_weights, prior, entry_index)
        return (factors, residual, variance), made

    start = (progress.factors, progress.residual, progress.variance)
    (factors, residual, variance), made = repeat(prune, start, settings.max_rank)
    return Growth(factors, progress.outliers, residual, variance, jnp.zeros((), residual.dtype)), made, count


def _grow(
    settings: Settings,
    window: Window,
    start: Growth,
    slice_weights: Array,
    time_weights: Array,
    count: Array,
    most: Array,
) -> tuple[Growth, Array]:
    """Candidates added as long as the ELBO gains, and how many."""
    model, entry_index = outlier_model(settings), window.entry_index

    def bound(outliers: OutlierState, residual: Array, variance: Array) -> Array:
        return elbo.outlier_model(settings, outliers, window, slice_weights, residual, variance)

    def add(growth: Growth) -> tuple[Growth, Array]:
        weights = model.candidate_weights(growth.outliers, window, slice_weights)
        energy = (weights * (growth.residual**2 + growth.variance)).sum()
        fit = CandidateFit(weights, growth.residual, energy, count, time_weights, settings.precision_prior, entry_index)
        candidate = fit.fitted()
        residual, variance = candidate.left(growth.residual, growth.variance, entry_index)
        nothing, square = jnp.zeros((), residual.dtype), residual**2 + variance  # only E r² is read of both
        outliers = model.update(settings, growth.outliers, window, slice_weights, nothing, square)
        after = bound(outliers, nothing, square)
        margin = ELBO_MARGIN * float(np.finfo(after.dtype).eps) * jnp.abs(after)
        gains = after + candidate.elbo > growth.elbo + margin

        def grown(growth: Growth) -> Growth:
            left = candidate.left(growth.residual, growth.variance, entry_index)
            return Growth(added(growth.factors, candidate), outliers, *left, after)

        return only_if(gains, grown, growth), gains

    # Updated first, so that what the outlier model gains alone is not attributed to the candidate.
    outliers = model.update(settings, start.outliers, window, slice_weights, start.residual, start.variance)
    own = bound(outliers, start.residual, start.variance)
    return repeat(add, replace(start, outliers=outliers, elbo=own), most)
