"""Infer a slice with the factors fixed: later on, of another slice, one half from the other, single entries."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model import level as levels
from undertow.model.factors import layout
from undertow.model.factors.rows import only_row, single_row
from undertow.model.flags import Flags
from undertow.model.flow import where
from undertow.model.noise.models import outlier_model
from undertow.model.phases.begin import usable
from undertow.model.report import Report, report_slice, usual_noise
from undertow.model.settings import Settings
from undertow.model.types import Core, EntryIndex, Window, taken, turned
from undertow.programs.program import program


@program()
def smooth(core: Core, lag: Array, settings: Settings) -> Report:
    """What is known now about the slice `lag` steps before the newest."""
    slot = turned(core.window.newest - lag, settings.window)
    row, entry_index = only_row(core.factors, slot), layout.alone(core.window, slot).entry_index
    residual = taken(core.window.values, slot) - levels.mean_of(core.level, slot) - layout.low_rank(row, entry_index)[0]
    variance = layout.variance(row, entry_index)[0] + levels.variance_of(core.level, slot)
    return report_slice(settings, core, slot, residual, variance, usual_noise(settings, core))


@program()
def latest(core: Core, settings: Settings) -> Report:
    """What is known about the newest slice; of a dense window, the newest in which anything was used."""
    lag = jnp.asarray(0, jnp.int32)
    if core.window.entry_index is None:
        used = core.window.mask.reshape(len(core.window.mask), -1).any(axis=1)[core.window.by_age()]
        lag = jnp.argmax(used).astype(jnp.int32)
    report: Report = smooth(core, lag, settings)
    return report


@program()
def infer(core: Core, values: Array, mask: Array, settings: Settings, entry_index: EntryIndex | None = None) -> Report:
    """The report of a slice given factors and level as they are: nothing is learned from it."""
    model = outlier_model(settings)
    values, mask = usable(values, mask)
    slot = jnp.asarray(0, jnp.int32)
    values, mask, entry_index = jax.tree.map(lambda array: array[None], (values, mask, entry_index))
    window = Window(values, mask, newest=slot, filled=jnp.asarray(1, jnp.int32), entry_index=entry_index)
    level = None if core.level is None else levels.coming(core.level, core.window)
    outliers, factors = model.infer(model.one_slice(core.outliers), single_row(core.factors), window, level)
    residual = values[0] - levels.mean_of(level, slot) - layout.low_rank(factors, entry_index)[0]
    variance = layout.variance(factors, entry_index)[0] + levels.variance_of(level, slot)
    return report_slice(
        settings, Core(window, factors, outliers, level), slot, residual, variance, usual_noise(settings, core)
    )


@program()
def cross_predict(
    core: Core, values: Array, mask: Array, half: Array, settings: Settings, entry_index: EntryIndex | None = None
) -> tuple[Array, Array]:
    """Every observed entry predicted from the other half of its slice, with factors and level as they are.

    Mean and variance of the observation (I_1, …, I_N); `half` says which entries belong together.
    """

    def from_one_half(shown: Array) -> tuple[Array, Array]:
        report = infer(core, where(shown, values, 0), shown, settings, entry_index)
        return report.low_rank, report.low_rank_variance + report.noise_variance

    means, variances = lax.map(from_one_half, jnp.stack([mask & half, mask & ~half]))
    return where(half, means[1], means[0]), where(half, variances[1], variances[0])


@program()
def at(core: Core, settings: Settings, entry_index: EntryIndex) -> Report:
    """The report of any entries of the newest slice of a sparse window, as if they had not been observed."""
    row = only_row(core.factors, core.window.newest)
    wanted = jax.tree.map(lambda array: array[None], entry_index)
    low_rank, variance = layout.low_rank(row, wanted), layout.variance(row, wanted)
    nothing = jnp.zeros_like(low_rank)
    slot = jnp.asarray(0, jnp.int32)
    window = Window(nothing, nothing > 0, slot, jnp.asarray(1, jnp.int32), wanted)
    outliers = outlier_model(settings).unobserved(core.outliers, core.window.newest, nothing)
    alone = Core(window, row, outliers, None)
    report = report_slice(settings, alone, slot, -low_rank[0], variance[0], usual_noise(settings, core))
    return replace(report, flags=report.flags & ~Flags.EMPTY.value)
