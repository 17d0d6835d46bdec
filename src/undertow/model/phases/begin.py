"""Begin a step: evict the oldest slice, write the new one into the window, initialise it robustly."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from undertow.model import level as levels
from undertow.model.control import Progress, sweep_limit
from undertow.model.defaults import LARGEST_VALUE, SMALL_WINDOW
from undertow.model.factors import layout
from undertow.model.factors.rows import only_row, temporal_weights
from undertow.model.factors.svd_start import svd_start
from undertow.model.flow import in_place, where
from undertow.model.noise.models import outlier_model
from undertow.model.phases.evict import evict
from undertow.model.settings import Settings
from undertow.model.types import Core, EntryIndex, Window, put, turned


def begin(
    core: Core, values: Array, mask: Array, settings: Settings, entry_index: EntryIndex | None = None
) -> tuple[Window, Progress]:
    """The window with the slice in it, and all that the sweeps start from."""
    model = outlier_model(settings)
    core = evict(settings, core)
    values, seen = usable(values, mask)
    window = _written(core.window, values, seen, entry_index, settings.window)
    level = None if core.level is None else levels.arrive(core.level, window, settings.window)
    outliers, factors = model.begin(settings, core.outliers, core.factors, window, level)
    if settings.start == "svd":
        time_weights = temporal_weights(settings, window.slice_weights(settings.forgetting))
        factors = svd_start(settings, factors, window, time_weights)
    misfit = model.changed(outliers, window)
    warm = (window.filled == settings.window) & ~misfit & (settings.start == "warm")
    zero = jnp.asarray(0, jnp.int32)
    alone = layout.alone(window, window.newest)
    expected = layout.low_rank(only_row(factors, window.newest), alone.entry_index)[0]
    progress = Progress(
        factors=factors,
        outliers=outliers,
        level=level,
        residual=jnp.zeros_like(window.values),  # of the first sweep on
        variance=jnp.zeros_like(window.values),
        known=layout.known_rows(settings, window, factors),
        newest=layout.summary(factors, window, expected + levels.mean_of(level, window.newest)),
        misfit=misfit,
        too_large=(mask & ~seen).any(),
        warm=warm,
        moving=jnp.asarray(True),
        iterations=zero,
        sweep_limit=sweep_limit(settings, warm, zero),
        rounds=zero,
        adapting=(settings.start == "warm") & (~warm | model.adapt_likely(settings, outliers, window)),
        failed=zero,
        closed=jnp.asarray(False),
        elbo=jnp.zeros((), window.values.dtype),
    )
    return window, progress


def _written(window: Window, values: Array, seen: Array, entry_index: EntryIndex | None, length: int) -> Window:
    """`write`; where the window is large as a branch that is always taken, since the compiler would otherwise read the
    window before to do without the new one, and so copy it."""

    def write_slice(window: Window) -> Window:
        return write(window, values, seen, entry_index, length)

    large = window.values.size > SMALL_WINDOW
    return in_place(window.filled >= 0, write_slice, window) if large else write_slice(window)


def usable(values: Array, mask: Array) -> tuple[Array, Array]:
    """Values, 0 where there is nothing to compute with, and the mask of the others."""
    seen = mask & (jnp.abs(values) <= LARGEST_VALUE)
    return where(seen, values, 0), seen


def write(
    window: Window,
    values: Array,
    mask: Array,
    entry_index: EntryIndex | None = None,
    length: Array | int | None = None,
) -> Window:
    """The window with a slice written over the oldest of W = `length`; by default every slot is used."""
    length = jnp.asarray(len(window.values) if length is None else length, window.filled.dtype)
    slot = turned(window.newest + 1, length)
    return replace(
        window,
        values=put(window.values, slot, values),
        mask=put(window.mask, slot, mask),
        newest=slot,
        filled=jnp.minimum(window.filled + 1, length),
        entry_index=jax.tree.map(lambda ring, new: put(ring, slot, new), window.entry_index, entry_index),
    )
