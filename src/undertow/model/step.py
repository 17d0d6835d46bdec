"""Assembly only: the compiled step.

A step begins with the slice written into the window and initialised by a robust regression on the current factors.
Rounds follow: sweep over all unknowns (coordinate-ascent variational inference) until the newest slice has converged,
then prune components and add candidates by the ELBO.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model import level as levels
from undertow.model.control import Progress, judge_due, sweep_due
from undertow.model.defaults import LIKELY_SWEEPS, UNASKED_WINDOW
from undertow.model.factors import discounted, layout, predict, separable
from undertow.model.flow import while_due
from undertow.model.noise.models import outlier_model
from undertow.model.phases.begin import begin
from undertow.model.phases.finish import closed, finish
from undertow.model.phases.judge import judge
from undertow.model.phases.sweep import sweep, sweep_separable
from undertow.model.platform import on_cpu
from undertow.model.report import Report
from undertow.model.settings import Settings, Slots
from undertow.model.types import Core, EntryIndex, Factors, Window
from undertow.programs.program import program


def init_core(
    settings: Settings, shape: tuple[int, ...], entries: int | None = None, slots: Slots | None = None
) -> Core:
    """An empty window, no active component. With `entries`, a slice has positions for that many observed ones only."""
    dtype = jnp.dtype(settings.dtype)
    length, size = slots or Slots.exactly(settings)
    kept = shape if entries is None else (entries,)
    window = Window(
        values=jnp.zeros((length, *kept), dtype),
        mask=jnp.zeros((length, *kept), bool),
        newest=jnp.asarray(settings.window - 1, jnp.int32),
        filled=jnp.asarray(0, jnp.int32),
        entry_index=None if entries is None else layout.empty_entry_index((length, entries), shape),
    )
    factors = Factors(
        means=tuple(jnp.zeros((rows, size), dtype) for rows in shape),
        covariances=tuple(jnp.zeros((rows, size, size), dtype) for rows in shape),
        row_means=jnp.zeros((length, size), dtype),
        row_covariances=jnp.zeros((length, size, size), dtype),
        active=jnp.zeros(size, bool),
        precision_shape=jnp.ones(size, dtype),
        precision_rate=jnp.ones(size, dtype),
    )
    factors = replace(factors, discounted=discounted.init_rows(settings, shape, dtype, size))
    outliers = outlier_model(settings).init(settings, shape, dtype, entries, length)
    core = Core(window, factors, outliers, levels.init(length, shape, dtype) if settings.level else None)
    separate: Core = jax.tree.map(lambda leaf: leaf.copy(), core)  # a step takes over each array's memory
    return separate


@program(static=["holes"], donate=["core"])
def step(
    core: Core,
    values: Array,
    mask: Array,
    settings: Settings,
    holes: int | None = None,
    entry_index: EntryIndex | None = None,
) -> tuple[Core, Report]:
    """Learn from one slice. The old state's memory becomes the new one's.

    Args:
        core: The state before; used up.
        values: The slice, in units of the stream.
        mask: True where observed.
        settings: With a window and a `max_rank` for which `core` has slots.
        holes: If given, the most entries that can be missing in the window: separable sums are used (separable.py
            says for which models).
        entry_index: Where the values lie, if not all entries of the slice are there.

    Returns:
        The new state, and the report of the slice.
    """
    window, start = begin(core, values, mask, settings, entry_index)
    missing = None if holes is None else separable.missing_entries(window, holes)

    @jax.named_scope("sweep")  # so that what one sweep costs can be found in the compiled program
    def one_sweep(progress: Progress) -> Progress:
        if missing is None:
            return sweep(settings, window, progress)
        return sweep_separable(settings, window, progress, missing)

    def swept(progress: Progress, likely: int = 0) -> Progress:
        progress = while_due(sweep_due, one_sweep, progress, likely)
        if missing is None:
            return progress
        residual = window.values - predict.low_rank(progress.factors)
        return replace(progress, residual=residual, variance=predict.variance(progress.factors))

    def one_round(progress: Progress) -> Progress:
        progress = swept(progress)
        return closed(settings, window, progress) if settings.start == "svd" else judge(settings, window, progress)

    def due(progress: Progress) -> Array:
        return ~progress.closed & sweep_due(progress) | judge_due(settings, window, progress)

    if on_cpu():
        end = lax.while_loop(lambda progress: ~progress.closed, one_round, start)
    else:  # most slices need some sweeps and nothing else: of these the host is asked once
        likely = LIKELY_SWEEPS if window.values.size < UNASKED_WINDOW else 1
        end = closed(settings, window, lax.while_loop(due, one_round, swept(start, likely)))
    return finish(settings, core, window, end)
