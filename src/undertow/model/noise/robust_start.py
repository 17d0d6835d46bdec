"""Robust initialisation of a slice: temporal row, outliers and noise, by robust regression on fixed factors."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import (
    FEW_OUTLIERS_ITERATIONS,
    SCALE_TOLERANCE,
    START_ITERATIONS,
    START_LIKELY,
    START_TOLERANCE,
)
from undertow.model.factors import layout
from undertow.model.factors.rows import single_row
from undertow.model.flow import each, either, where, while_due
from undertow.model.noise.mixture import (
    energies,
    log_rates,
    median_scale,
    outlier_probability,
    precision,
    robustness_weight,
    slice_scales,
    slice_worth,
)
from undertow.model.platform import on_cpu
from undertow.model.types import Contaminated, Factors, Window


class Fit(NamedTuple):
    """A slice that is being inferred: its row, E r², ρ, φ and the κ that these ask for so far."""

    row: Factors
    square: Array
    probability: Array
    scale: Array
    ratio: Array
    moving: Array
    turns: Array


class Explanation(NamedTuple):
    """What does not fit, explained: ρ, φ and κ, after some turns."""

    probability: Array
    scale: Array
    ratio: Array
    turns: Array


def fit_row(state: Contaminated, factors: Factors, window: Window, level_variance: Array | float) -> Fit:
    """Fit a window of one slice, whose level has the variance `level_variance`.

    First stage: a row from least absolute deviations, beginning at 0: a spike of any size is one vote there, and a
    changed scene decides nothing immediately. What does not fit is then explained (`explained`). Second stage: row, ρ
    and φ converge together.
    """
    values, mask, entry_index = window.values, window.mask, window.entry_index
    weight, rates = jnp.ones(1, values.dtype), log_rates(state)

    def regressed(row: Factors, robustness: Array) -> tuple[Factors, Array]:
        weights = where(mask, precision(state) * robustness, 0)
        row, unsolved = layout.update_rows(row, weights, values, weight, entry_index)
        del unsolved  # the row keeps its last value, and the sweeps report what stays unsolved
        residual = values - layout.low_rank(row, entry_index)
        return row, residual**2 + layout.variance(row, entry_index) + level_variance

    def stage(number: Array | int, fit: Fit) -> Fit:
        first = number == 0

        def turn(fit: Fit) -> Fit:
            now = replace(state, ratio=fit.ratio)
            size = jnp.maximum(fit.scale, energies(state, mask, fit.square))
            robustness = robustness_weight(now, fit.probability, fit.scale)
            row, square = regressed(fit.row, where(first, 1 / jnp.sqrt(fit.scale * size), robustness))

            def by_median() -> tuple[Array, Array, Array]:
                scale = median_scale(state, mask, square, entry_index)
                return fit.probability, scale, jnp.abs(jnp.log(scale / fit.scale)).max() > SCALE_TOLERANCE

            def by_mixture() -> tuple[Array, Array, Array]:
                scale = slice_scales(now, mask, fit.probability, square)
                probability = outlier_probability(now, mask, square, scale, rates)
                scale = slice_scales(now, mask, probability, square)
                return probability, scale, jnp.abs(probability - fit.probability).max() > START_TOLERANCE

            probability, scale, moving = either(first, by_median, by_mixture)
            return Fit(row, square, probability, scale, fit.ratio, moving, fit.turns + 1)

        fit = fit._replace(moving=jnp.asarray(True), turns=jnp.asarray(0, jnp.int32))
        fit = while_due(lambda now: now.moving & (now.turns < START_ITERATIONS), turn, fit, START_LIKELY)
        return either(first, lambda: explained(state, mask, fit, rates), lambda: fit)

    square = values**2 + level_variance
    scale = median_scale(state, mask, square, entry_index)
    start = Fit(
        single_row(factors),
        square,
        jnp.zeros_like(square),
        scale,
        state.ratio,
        jnp.asarray(True),
        jnp.asarray(0, jnp.int32),
    )
    if not on_cpu():
        return stage(1, stage(0, start))
    end: Fit = lax.fori_loop(0, 2, stage, start)  # one piece of program for both
    return end


def explained(state: Contaminated, mask: Array, fit: Fit, rates: Array) -> Fit:
    """What does not fit, by the noise of the whole slice, or by outliers among little noise: the higher ELBO wins.

    Coordinate steps lead from neither to the other. *Much noise*: φ as if nothing were an outlier. *Few outliers*: φ
    by the median, then κ as large as the outliers found ask for, besides those known, and φ by the others, in turn.
    """
    energy = energies(state, mask, fit.square)

    def explanation(first: tuple[Array, Array]) -> tuple[Explanation, Array]:
        first_scale, turns = first

        def turn(so_far: Explanation) -> Explanation:
            again, rho = so_far.turns > 0, so_far.probability
            ratio = (state.rate_a * state.ratio + (rho * energy).sum()) / (state.rate_a + rho.sum())
            now = replace(state, ratio=where(again, jnp.maximum(ratio, state.ratio), state.ratio))
            scale = where(again, slice_scales(now, mask, rho, fit.square), first_scale)
            probability = outlier_probability(now, mask, fit.square, scale, rates)
            return Explanation(probability, scale, now.ratio, so_far.turns + 1)

        start = Explanation(jnp.zeros_like(energy), first_scale, state.ratio, jnp.asarray(0, jnp.int32))
        end = while_due(lambda so_far: so_far.turns < turns, turn, start, most, most)
        at_end = replace(state, slice_scale=end.scale, ratio=end.ratio)
        return end, slice_worth(at_end, mask, fit.square, rates)

    most = 1 + FEW_OUTLIERS_ITERATIONS
    noisy = slice_scales(state, mask, jnp.zeros_like(energy), fit.square)
    few = jnp.minimum(fit.scale, state.ratio)
    both, worth = each(explanation, (jnp.stack([noisy, few]), jnp.asarray([1, most])))
    best = jax.tree.map(lambda two: where(worth[1] > worth[0], two[1], two[0]), both)
    return fit._replace(probability=best.probability, scale=best.scale, ratio=best.ratio)
