"""Finish a step: what is done once per slice after the sweeps, the new state and the report."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model import elbo
from undertow.model import level as levels
from undertow.model.control import Progress
from undertow.model.factors.rows import with_row
from undertow.model.flags import Flags
from undertow.model.flow import in_place, where
from undertow.model.noise.models import outlier_model
from undertow.model.report import Report, raised, report_slice, usual_noise
from undertow.model.settings import Settings
from undertow.model.types import Core, Level, OutlierState, Window, put, taken


def closed(settings: Settings, window: Window, progress: Progress) -> Progress:
    """Nothing is left to be done: the ELBO as it is now."""
    now = progress.factors, progress.outliers, progress.residual, progress.variance, progress.level
    bound = elbo.total(settings, window, *now)
    return replace(progress, closed=jnp.asarray(True), elbo=bound)


def finish(settings: Settings, before: Core, window: Window, end: Progress) -> tuple[Core, Report]:
    """The new state and the report, given the state before the step."""
    model = outlier_model(settings)
    slice_weights = window.slice_weights(settings.forgetting)
    outliers = model.finish(settings, end.outliers, window, slice_weights, end.residual, end.variance)
    level = _adapted_level(settings, outliers, end.level, window, end.residual)
    core = Core(window, end.factors, outliers, level)
    newest = taken(end.residual, window.newest), taken(end.variance, window.newest)
    report = report_slice(settings, core, window.newest, *newest, usual_noise(settings, core))
    flags = raised(
        {
            Flags.NOT_CONVERGED: end.moving & (end.iterations >= settings.max_iterations),
            Flags.SINGULAR: end.failed > 0,
            Flags.CHANGED: end.misfit & core.factors.active.any(),
            Flags.OUT_OF_RANGE: end.too_large,
        }
    )
    report = replace(report, iterations=end.iterations, elbo=end.elbo, flags=report.flags | flags)
    return _left_out(settings, report.flags & Flags.NOT_FINITE.value != 0, core, before, report)


def _adapted_level(
    settings: Settings, outliers: OutlierState, level: Level | None, window: Window, residual: Array
) -> Level | None:
    """The level with its walks chosen anew, by the newest slice; `residual` is y − m̄ − x̄."""
    if level is None:
        return None
    slot = window.newest
    robustness, noise = outlier_model(settings).level_weights(outliers, slot)
    return levels.finish(
        level, taken(window.mask, slot), robustness, taken(residual, slot) + taken(level.mean, slot), noise
    )


def _left_out(settings: Settings, condition: Array, core: Core, before: Core, report: Report) -> tuple[Core, Report]:
    """Where the condition holds: the state before, its window one empty slice further; and the report.

    The report goes along, so that all of it has been read when the state is overwritten where it lies. Probabilities
    start anew: keeping the old ones for that case would cost as much memory as the window.
    """
    window, slot = core.window, core.window.newest
    window = replace(
        window,
        values=put(window.values, slot, where(condition, 0, taken(window.values, slot))),
        mask=put(window.mask, slot, ~condition & taken(window.mask, slot)),
    )
    rows = before.factors.row_means[0], before.factors.row_covariances[0]
    factors = with_row(before.factors, slot, jnp.zeros_like(rows[0]), jnp.zeros_like(rows[1]))
    old = (factors, outlier_model(settings).cleared(before.outliers), before.level)
    new = (core.factors, core.outliers, core.level)
    (state, report) = in_place(condition, lambda now: (old, now[1]), (new, report))
    return Core(window, *state), report
