"""Coordinate-ascent variational inference: one sweep over all unknowns."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model import level as levels
from undertow.model.control import Progress, relaxation, still_moving
from undertow.model.factors import discounted, layout, predict, rank, separable
from undertow.model.factors.rows import only_row, temporal_weights
from undertow.model.noise.models import outlier_model
from undertow.model.settings import Settings
from undertow.model.types import Factors, Level, OutlierState, Window, taken


def sweep(settings: Settings, window: Window, progress: Progress) -> Progress:
    """One sweep: factors, precisions, level, outlier model."""
    model = outlier_model(settings)
    slice_weights = window.slice_weights(settings.forgetting)
    time_weights = temporal_weights(settings, slice_weights)
    weights, targets = model.weights_and_targets(progress.outliers, window, slice_weights)
    targets = targets - levels.mean_of(progress.level)
    beta = relaxation(settings, progress)
    factors, failed = layout.sweep(progress.factors, weights, targets, time_weights, window.entry_index, beta)
    factors = rank.update_precision(factors, time_weights, settings.precision_prior, progress.known)
    factors = discounted.update_retention(factors)
    residual = window.values - layout.low_rank(factors, window.entry_index)
    variance = layout.variance(factors, window.entry_index)
    level = smoothed_level(settings, progress.outliers, progress.level, window, residual)
    residual, variance = residual - levels.mean_of(level), variance + levels.variance_of(level)
    outliers = model.update(settings, progress.outliers, window, slice_weights, residual, variance)
    newest = layout.summary(factors, window, taken(window.values, window.newest) - taken(residual, window.newest))
    progress = replace(progress, level=level, residual=residual, variance=variance)
    return _swept(settings, progress, factors, outliers, newest, failed)


def sweep_separable(settings: Settings, window: Window, progress: Progress, missing: separable.Missing) -> Progress:
    """The same sweep by separable sums; residuals and variances of entries are left for the end."""
    slice_weights = window.slice_weights(settings.forgetting)
    weights = separable.weights(progress.outliers, window, slice_weights)
    beta = relaxation(settings, progress)
    factors, failed = separable.sweep(progress.factors, window.values, weights, slice_weights, missing, beta)
    factors = rank.update_precision(factors, slice_weights, settings.precision_prior, progress.known)
    squares = separable.squares(factors, window, missing)
    outliers = separable.update(settings, progress.outliers, window, slice_weights, squares)
    newest = predict.low_rank(only_row(factors, window.newest))[0]
    return _swept(settings, progress, factors, outliers, newest, failed)


def _swept(
    settings: Settings,
    progress: Progress,
    factors: Factors,
    outliers: OutlierState,
    newest: layout.Summary,
    failed: Array,
) -> Progress:
    """What a sweep has found, and whether another is needed."""
    return replace(
        progress,
        factors=factors,
        outliers=outliers,
        newest=newest,
        moving=still_moving(settings, progress, outliers, newest),
        iterations=progress.iterations + 1,
        failed=progress.failed + failed,
    )


def smoothed_level(
    settings: Settings, outliers: OutlierState, level: Level | None, window: Window, targets: Array
) -> Level | None:
    """The level of the window given y − x̄. No slice counts less for being old: the walk itself forgets."""
    if level is None:
        return None
    alike = jnp.ones(targets.shape[0], targets.dtype)
    weights, _ = outlier_model(settings).weights_and_targets(outliers, window, alike)
    return levels.update(level, window, weights, targets, settings.window)
