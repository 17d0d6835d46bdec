"""One name for each operation on the window, in both layouts: every entry, or observed entries only.

`entry_index` is the window's: None where all entries are kept (rows.py, predict.py), else where they lie (observed.py).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.model.factors import observed, predict
from undertow.model.factors import rows as whole
from undertow.model.flow import shared
from undertow.model.platform import on_mesh
from undertow.model.settings import Settings
from undertow.model.types import EntryIndex, Factors, KnownRows, Window, taken

Summary = Array | observed.Summary


def sweep(
    factors: Factors,
    weights: Array,
    targets: Array,
    time_weights: Array,
    entry_index: EntryIndex | None,
    relaxation: Array | float | None = None,
) -> tuple[Factors, Array]:
    """Update every axis once. Returns how many rows could not be solved, too."""
    if entry_index is None:
        return whole.sweep(factors, weights, targets, time_weights, relaxation)
    return observed.sweep(factors, weights, targets, time_weights, entry_index, relaxation)


def update_rows(
    factors: Factors, weights: Array, targets: Array, time_weights: Array, entry_index: EntryIndex | None
) -> tuple[Factors, Array]:
    """Update the temporal rows."""
    if entry_index is None:
        biggest, _ = whole.plan(weights.shape)
        return whole.update_axes(factors, weights, targets, time_weights, [0], biggest)
    return observed.update_axes(factors, weights, weights * targets, time_weights, [0], entry_index)


def low_rank(factors: Factors, entry_index: EntryIndex | None) -> Array:
    """x̄ of the window."""
    return predict.low_rank(factors) if entry_index is None else observed.low_rank(factors, entry_index)


def variance(factors: Factors, entry_index: EntryIndex | None) -> Array:
    """Var[x] of the window."""
    return predict.variance(factors) if entry_index is None else observed.variance(factors, entry_index)


@shared
def component(factors: Factors, slot: Array, entry_index: EntryIndex | None) -> tuple[Array, Array]:
    """What one component adds to x̄ and to Var[x]."""
    return predict.component(factors, slot) if entry_index is None else observed.component(factors, slot, entry_index)


def outer_product(columns: list[Array], entry_index: EntryIndex | None) -> Array:
    """Π over axes of one column each."""
    return predict.outer_product(columns) if entry_index is None else observed.outer_product(columns, entry_index)


def row_sums(per_slice: Array, values: Array, mode: int, entry_index: EntryIndex | None) -> Array:
    """Σ of per_slice_t values_t over the entries of each row of a mode (I_mode,)."""
    if entry_index is None:
        summed = jnp.tensordot(per_slice, values, axes=1)
        return summed.sum(axis=tuple(other for other in range(summed.ndim) if other != mode))
    return observed.row_sums(per_slice[:, None] * values, mode, entry_index)


def known_rows(settings: Settings, window: Window, factors: Factors) -> KnownRows:
    """Rows in which something was observed, in the window or before it; all of them in the paper's model."""
    if settings.start == "svd":
        return tuple(jnp.ones(len(mean), bool) for mean in factors.means)
    ones = jnp.ones(len(window.mask), factors.row_means.dtype)
    counts = (row_sums(ones, window.mask.astype(ones.dtype), mode, window.entry_index) for mode in range(modes(window)))
    known = tuple(count > 0 for count in counts)
    if factors.discounted is None:
        return known
    return tuple(now | gram.any(axis=1) for now, gram in zip(known, factors.discounted.gram, strict=True))


def modes(window: Window) -> int:
    """N."""
    return window.values.ndim - 1 if window.entry_index is None else len(window.entry_index.sizes)


def sample(values: Array, entry_index: EntryIndex | None, most: int) -> Array:
    """Some of the values, evenly spread: enough for a median, few enough to be sorted in no time."""
    if entry_index is None:
        step = max(1, values.size // most)
        if on_mesh():  # by their places on each axis: laid end to end, all values would be gathered first
            return values[np.unravel_index(np.arange(0, values.size, step), values.shape)]
        return values.reshape(-1)[::step]
    return observed.sample(values, entry_index, most)


def alone(window: Window, slot: Array) -> Window:
    """One slice of the window as a window of its own."""
    values, mask, entry_index = jax.tree.map(
        lambda ring: taken(ring, slot)[None], (window.values, window.mask, window.entry_index)
    )
    return Window(values, mask, jnp.asarray(0, jnp.int32), jnp.asarray(1, jnp.int32), entry_index)


def summary(factors: Factors, window: Window, mean: Array) -> Summary:
    """The newest slice, all entries of it: `mean`, or its factors where not all entries are kept."""
    return mean if window.entry_index is None else (taken(factors.row_means, window.newest), *factors.means)


def size_of(slice_: Summary) -> Array:
    """Root mean square of all entries."""
    return observed.size_of(slice_) if isinstance(slice_, tuple) else jnp.sqrt((slice_**2).mean())


def distance(one: Summary, other: Summary) -> Array:
    """Root mean square difference of two slices."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return observed.distance(one, other)
    assert not isinstance(one, tuple)
    assert not isinstance(other, tuple)
    return jnp.sqrt(((one - other) ** 2).mean())


def empty_entry_index(shape: tuple[int, ...], sizes: tuple[int, ...]) -> EntryIndex:
    """An index without entries: `shape` is (W, E), `sizes` are those of the modes."""
    empty = jnp.zeros(shape, jnp.int32)
    fibres = (empty,) * max(0, len(sizes) - 2)
    return EntryIndex((empty,) * len(sizes), fibres, jnp.zeros(shape[:-1], jnp.int32), sizes)
