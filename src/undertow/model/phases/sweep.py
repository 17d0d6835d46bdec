"""One sweep over all unknowns, and what sweeps hand on to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model import level as levels
from undertow.model.factors import discounted, layout, predict, rank, separable
from undertow.model.noise import contaminated
from undertow.model.noise.pooled import noise_floor
from undertow.model.phases.infer import OUTLIER_MODELS, only_row
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, GaussianGamma, Level, Window

COOLING = 0.05
"""Noise variance that falls by more than this share per sweep is still being found."""
SLOW = 2
"""What still moves after so many sweeps settles slowly: from then on rows go beyond their optimum (factors.py)."""
BEYOND = 0.6
"""By this share of the way."""


@register_dataclass
@dataclass(frozen=True)
class Progress:
    """What the sweeps of one step hand on to each other."""

    factors: Factors
    outliers: Contaminated | GaussianGamma
    level: Level | None
    residual: Array
    """y − m̄ − x̄ of the window (W, I_1, …, I_N)."""
    variance: Array
    """Var x + Var m of the window."""
    newest: layout.Portrait
    """m̄ + x̄ of the newest slice after the last sweep (I_1, …, I_N), or what it is made of."""
    surprised: Array
    """Whether the slice, as it was met, did not fit."""
    too_large: Array
    """Whether some of its entries are too large to compute with."""
    warm: Array
    """Whether patience is short: the window is full and the slice fits."""
    moving: Array
    """Whether another sweep is needed."""
    iterations: Array
    most: Array
    """How many sweeps there will have been at the end of this round, at most."""
    rounds: Array
    """How often components were born or died."""
    changed: Array
    """Whether components may be born or die after these sweeps: at first, and as long as some did."""
    thinning: Array
    """Whether it is still to be tried to do with fewer components, if some are entangled."""
    failed: Array
    """Rows that could not be solved."""


def swept(settings: Settings, window: Window, progress: Progress) -> Progress:
    """One sweep over all unknowns."""
    model = OUTLIER_MODELS[settings.outliers]
    slice_weights = window.slice_weights(settings.forgetting)
    row_share = model.row_share(slice_weights)
    weights, targets = model.weights_and_targets(progress.outliers, window, slice_weights)
    targets = targets - levels.mean_of(progress.level)
    further = beyond(settings, progress)
    factors, failed = layout.sweep(progress.factors, weights, targets, row_share, window.entry_index, further)
    factors = discounted.update_retention(rank.update_precision(factors, row_share, settings.precision_prior))
    residual = window.values - layout.low_rank(factors, window.entry_index)
    variance = layout.variance(factors, window.entry_index)
    level = smoothed_level(progress.outliers, progress.level, window, residual)
    residual, variance = residual - levels.mean_of(level), variance + levels.variance_of(level)
    outliers = model.update(settings, progress.outliers, window, slice_weights, residual, variance)
    newest = layout.portrait(factors, window, window.values[window.newest] - residual[window.newest])
    progress = replace(progress, level=level, residual=residual, variance=variance)
    return settled(settings, progress, factors, outliers, newest, failed)


def swept_nearly_full(settings: Settings, window: Window, progress: Progress, gaps: separable.Holes) -> Progress:
    """The same sweep by sums that fall apart; residuals and variances of entries are left for the end."""
    before = progress.outliers
    assert isinstance(before, Contaminated)
    slice_weights = window.slice_weights(settings.forgetting)
    weights = separable.weights(before, window, slice_weights)
    further = beyond(settings, progress)
    factors, failed = separable.sweep(progress.factors, window.values, weights, slice_weights, gaps, further)
    factors = rank.update_precision(factors, slice_weights, settings.precision_prior)
    outliers = separable.update(settings, before, window, slice_weights, separable.squares(factors, window, gaps))
    newest = predict.low_rank(only_row(factors, window.newest))[0]
    return settled(settings, progress, factors, outliers, newest, failed)


def settled(
    settings: Settings,
    progress: Progress,
    factors: Factors,
    outliers: Contaminated | GaussianGamma,
    newest: layout.Portrait,
    failed: Array,
) -> Progress:
    """What a sweep has found, and whether another is needed."""
    model = OUTLIER_MODELS[settings.outliers]
    # Moves below the rounding of the arithmetic say nothing, however small the noise.
    dtype = progress.residual.dtype
    resolution = 30 * float(np.finfo(dtype).eps) * layout.size_of(newest)
    least = jnp.maximum(settings.tolerance * jnp.sqrt(model.typical_noise(outliers)), resolution)
    moving = layout.distance(newest, progress.newest) > least
    # Large noise hides moves: as long as it falls, nothing has settled.
    cooling = model.typical_noise(outliers) < (1 - COOLING) * model.typical_noise(progress.outliers)
    moving |= cooling & (model.typical_noise(outliers) > 2 * noise_floor(dtype))
    return replace(
        progress,
        factors=factors,
        outliers=outliers,
        newest=newest,
        moving=moving,
        iterations=progress.iterations + 1,
        failed=progress.failed + failed,
    )


def beyond(settings: Settings, progress: Progress) -> Array:
    """How far the means of the next sweep go beyond their optimum; the paper's do not."""
    slow = (progress.iterations >= SLOW) & (settings.start == "warm")
    return jnp.where(slow, BEYOND, 0).astype(progress.residual.dtype)


def smoothed_level(
    outliers: Contaminated | GaussianGamma, level: Level | None, window: Window, targets: Array
) -> Level | None:
    """The level of the window given y − x̄. No slice counts less for being old: the walk itself forgets."""
    if level is None or isinstance(outliers, GaussianGamma):
        return level
    alike = jnp.ones(targets.shape[0], targets.dtype)
    weights, _ = contaminated.weights_and_targets(outliers, window, alike)
    return levels.update(level, window, weights, targets)


def bound(settings: Settings, window: Window, progress: Progress) -> Array:
    """The evidence bound of all that the sweeps work on."""
    model, factors = OUTLIER_MODELS[settings.outliers], progress.factors
    slice_weights = window.slice_weights(settings.forgetting)
    whole: Array = rank.elbo(factors, model.row_share(slice_weights), settings.precision_prior)
    whole += model.elbo(settings, progress.outliers, window, slice_weights, progress.residual, progress.variance)
    return whole if factors.discounted is None else whole + discounted.elbo(factors, factors.discounted)
