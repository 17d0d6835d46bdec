"""Robust initialisation of a slice: temporal row, outliers and noise, by robust regression on fixed factors."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import FEW_OUTLIERS_ITERATIONS, SCALE_TOLERANCE, START_ITERATIONS, START_TOLERANCE
from undertow.model.factors import layout
from undertow.model.factors.rows import single_row
from undertow.model.flow import choose
from undertow.model.noise.mixture import (
    energies,
    first_scale,
    median_scale,
    outlier_probability,
    precision,
    robustness_weight,
    slice_scales,
    slice_worth,
)
from undertow.model.types import Contaminated, EntryIndex, Factors, Window


class Start(NamedTuple):
    """A slice before anything is called an outlier: its row, E r² and φ so far."""

    row: Factors
    square: Array
    scale: Array
    moving: Array
    turns: Array


class Fit(NamedTuple):
    """A slice that is being inferred: its row, ρ, φ and the κ that these ask for so far."""

    row: Factors
    probability: Array
    scale: Array
    ratio: Array
    moving: Array
    turns: Array


def fit_row(state: Contaminated, factors: Factors, window: Window, level_variance: Array | float) -> Fit:
    """Fit a window of one slice, whose level has the variance `level_variance`.

    A first row comes from least absolute deviations, beginning at 0: a spike of any size is one vote there, and a
    changed scene decides nothing immediately. What does not fit is then explained either by the noise of the whole
    slice or by outliers among little noise, whichever has the higher ELBO: coordinate steps lead from neither to the
    other. From there row, ρ and φ converge together.
    """
    values, mask, entry_index = window.values, window.mask, window.entry_index
    weight, moving, zero = jnp.ones(1, values.dtype), jnp.asarray(True), jnp.asarray(0, jnp.int32)

    def regressed(row: Factors, robustness: Array) -> tuple[Factors, Array]:
        weights = jnp.where(mask, precision(state) * robustness, 0)
        row, unsolved = layout.update_rows(row, weights, weights * values, weight, entry_index)
        del unsolved  # the row keeps its last value, and the sweeps report what stays unsolved
        return row, (values - layout.low_rank(row, entry_index)) ** 2 + layout.variance(
            row, entry_index
        ) + level_variance

    def first_turn(start: Start) -> Start:
        energy = energies(state, mask, start.square)
        row, square = regressed(start.row, 1 / jnp.sqrt(start.scale * jnp.maximum(start.scale, energy)))
        scale = median_scale(state, mask, square, entry_index)
        moved = jnp.abs(jnp.log(scale / start.scale)).max() > SCALE_TOLERANCE
        return Start(row, square, scale, moved, start.turns + 1)

    def turn(fit: Fit) -> Fit:
        now = replace(state, ratio=fit.ratio)
        row, square = regressed(fit.row, robustness_weight(now, fit.probability, fit.scale))
        scale = slice_scales(now, mask, fit.probability, square)
        probability = outlier_probability(now, mask, square, scale)
        scale = slice_scales(now, mask, probability, square)
        moved = jnp.abs(probability - fit.probability).max() > START_TOLERANCE
        return Fit(row, probability, scale, fit.ratio, moved, fit.turns + 1)

    def moving_on(now: Start | Fit) -> Array:
        return now.moving & (now.turns < START_ITERATIONS)

    square = values**2 + level_variance
    start = Start(single_row(factors), square, median_scale(state, mask, square, entry_index), moving, zero)
    start = lax.while_loop(moving_on, first_turn, start)
    noisy, few = much_noise(state, mask, start.square), few_outliers(state, mask, start.square, entry_index)
    sharper = slice_worth(few, mask, start.square) > slice_worth(noisy, mask, start.square)
    best = choose(sharper, few, noisy)
    fit = Fit(start.row, best.probability, best.slice_scale, best.ratio, moving, zero)
    end: Fit = lax.while_loop(moving_on, turn, fit)
    return end


def much_noise(state: Contaminated, mask: Array, square: Array) -> Contaminated:
    """Of one slice: φ as if nothing were an outlier, and the outliers that there are even then."""
    return judged(state, mask, square, slice_scales(state, mask, jnp.zeros_like(square), square))


def judged(state: Contaminated, mask: Array, square: Array, scale: Array) -> Contaminated:
    """Of one slice: φ, and ρ by it."""
    return replace(state, slice_scale=scale, probability=outlier_probability(state, mask, square, scale))


def few_outliers(state: Contaminated, mask: Array, square: Array, entry_index: EntryIndex | None) -> Contaminated:
    """Of one slice: φ by its median, and κ as large as the outliers then found ask for, besides those known."""

    def turn(_: int, few: Contaminated) -> Contaminated:
        energy = (few.probability * energies(state, mask, square)).sum()
        ratio = (state.rate_a * state.ratio + energy) / (state.rate_a + few.probability.sum())
        few = replace(few, ratio=jnp.maximum(ratio, state.ratio))
        return judged(few, mask, square, slice_scales(few, mask, few.probability, square))

    small = judged(state, mask, square, first_scale(state, mask, square, entry_index))
    few: Contaminated = lax.fori_loop(0, FEW_OUTLIERS_ITERATIONS, turn, small)
    return few
