"""The CP model as a predictor: leaving out an entry, against dense least squares that actually leave it out."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model import level as levels
from undertow.tracker.predictors import cp
from undertow.tracker.predictors.cp import (
    CP,
    LARGE_SLICE,
    LARGEST_RANK,
    Regression,
    configs,
    left_out,
    left_out_of_all,
    of_report,
    rows_ahead,
)

SHAPE, COMPONENTS, LENGTH = (4, 3, 2), 3, 5


def made(filled, seed=0):
    """A state with random factors, `filled` slices in its window, and a slice with outliers and gaps."""
    _, core = dense.random_core(SHAPE, COMPONENTS, LENGTH, "default", seed=seed)
    newest = 1 if filled == LENGTH else filled - 1  # slots are written from the first on
    window = replace(core.window, filled=jnp.asarray(filled, jnp.int32), newest=jnp.asarray(newest, jnp.int32))
    core = replace(core, window=window)
    rng = np.random.default_rng(seed)
    values, mask = rng.normal(size=SHAPE), rng.random(SHAPE) < 0.6
    noise, probability = rng.uniform(0.2, 1, SHAPE), np.where(mask, rng.choice([0, 0, 0.5, 1], SHAPE), 0)
    report = (jnp.asarray(noise), jnp.asarray(probability))
    return core, jnp.asarray(np.where(mask, values, 0)), jnp.asarray(mask), report


@jax.jit
def predicted(core, values, mask, report, steps=1.0):
    noise, probability = report
    seen = SimpleNamespace(
        low_rank=values, noise_variance=noise, outlier_probability=probability, usual_noise=noise.mean()
    )
    return left_out(of_report(core, seen, steps), values.ravel(), mask.ravel().astype(values.dtype))


def design_of(core):
    factors = [np.asarray(means) for means in core.factors.means]
    columns = []
    for component in range(COMPONENTS):
        column = np.ones(())
        for means in factors:
            column = np.multiply.outer(column, means[:, component])
        columns.append(column.ravel())
    return np.stack(columns, 1)


def row_prior(core, filled, steps=1):
    """Mean and precision of the next temporal row by loops over the ring buffer, oldest first, and over the steps."""
    rows, newest = np.asarray(core.factors.row_means), int(core.window.newest)
    if filled <= 2:
        return np.zeros(COMPONENTS), np.asarray(core.factors.precision)
    ordered = [rows[(newest - age) % LENGTH] for age in reversed(range(filled))]
    centre, precision = np.zeros(COMPONENTS), np.zeros(COMPONENTS)
    for component in range(COMPONENTS):
        series = np.array([row[component] for row in ordered])
        before, now = series[:-1], series[1:]
        pull = np.clip(before @ now / max(before @ before, 1e-12), 0, 1)
        step, variance = np.mean((now - pull * before) ** 2) + 1e-6, 0.0
        centre[component] = series[-1]
        for _ in range(steps):
            centre[component], variance = pull * centre[component], pull**2 * variance + step
        precision[component] = 1 / variance
    return centre, precision


@pytest.mark.slow
@pytest.mark.parametrize(("filled", "steps"), [(0, 1), (2, 1), (3, 1), (5, 1), (5, 7)])
def test_every_entry_is_predicted_without_itself(filled, steps, double):
    core, values, mask, report = made(filled)
    found = predicted(core, values, mask, report, float(steps))
    design, (centre, precision) = design_of(core), row_prior(core, filled, steps)
    y, observed = np.asarray(values).ravel(), np.asarray(mask).ravel()
    noise = np.asarray(report[0]).ravel()
    trust = np.where(observed, (1 - np.asarray(report[1]).ravel()) / noise, 0)
    for entry in range(y.size):
        kept = (np.arange(y.size) != entry) & (trust > 0)
        # Ridge regression: the prior of the row as further observations of it.
        wide = np.vstack([np.sqrt(trust[kept])[:, None] * design[kept], np.diag(np.sqrt(precision))])
        target = np.concatenate([np.sqrt(trust[kept]) * y[kept], np.sqrt(precision) * centre])
        row = np.linalg.lstsq(wide, target, rcond=None)[0]
        spread = np.linalg.inv(wide.T @ wide)
        assert float(found.mean[entry]) == pytest.approx(design[entry] @ row, rel=1e-4, abs=1e-5)
        assert float(found.variance[entry]) == pytest.approx(design[entry] @ spread @ design[entry], rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(found.noise, noise, rtol=1e-9)


@pytest.mark.slow
def test_an_entry_that_is_withheld_misleads_nobody(double):
    """With no weight, an observation is predicted, and the others are, as if it had not been there."""
    core, values, mask, _ = made(LENGTH)
    report = (jnp.ones(SHAPE), jnp.zeros(SHAPE))
    given = of_report(
        core,
        SimpleNamespace(
            low_rank=values, noise_variance=report[0], outlier_probability=report[1], usual_noise=jnp.asarray(1.0)
        ),
    )
    weights, spoilt = mask.ravel().astype(values.dtype), int(np.flatnonzero(mask)[0])
    clean = left_out(given, values.ravel(), weights.at[spoilt].set(0))
    off = left_out(given, values.ravel().at[spoilt].set(1e3), weights.at[spoilt].set(0))
    np.testing.assert_allclose(off.mean, clean.mean, rtol=1e-9)


@pytest.mark.slow
def test_several_models_say_together_what_each_says_alone(double):
    given, (_, values, mask, _) = [], made(LENGTH)
    for seed in (0, 1):
        core, _, _, (noise, probability) = made(LENGTH, seed)
        seen = SimpleNamespace(
            low_rank=values, noise_variance=noise, outlier_probability=probability, usual_noise=noise.mean()
        )
        given.append(of_report(core, seen))
    weights = mask.ravel().astype(values.dtype)
    alone = [left_out(one, values.ravel(), weights) for one in given]
    (together,) = left_out_of_all(tuple(given), values.ravel(), weights)
    for part in ("mean", "variance", "noise"):
        expected = np.stack([getattr(one, part) for one in alone])
        np.testing.assert_allclose(getattr(together, part), expected, rtol=1e-9)
    narrow = replace(given[1], design=given[1].design[:, :2], centre=given[1].centre[:2], precision=jnp.ones(2))
    assert len(left_out_of_all((given[0], narrow), values.ravel(), weights)) == 2  # as one has more components


@pytest.mark.slow
def test_a_slice_that_does_not_fit_is_not_taken_for_a_noisy_one(double):
    """A report that blames the slice's noise leaves the noise of the stream as it usually is."""
    core, values, mask, report = made(LENGTH)
    usual = predicted(core, values, mask, report).noise
    noisy = SimpleNamespace(
        low_rank=values, noise_variance=100 * report[0], outlier_probability=report[1], usual_noise=report[0].mean()
    )
    np.testing.assert_allclose(of_report(core, noisy).noise, usual, rtol=1e-9)


@pytest.mark.slow
def test_a_nearly_empty_slice_follows_the_past(double):
    core, values, mask, report = made(LENGTH)
    found = predicted(core, jnp.zeros_like(values), jnp.zeros_like(mask), report)
    centre, _ = row_prior(core, LENGTH)
    np.testing.assert_allclose(found.mean, design_of(core) @ centre, rtol=1e-4, atol=1e-6)


def test_settings_follow_the_size_of_slices():
    small = configs((6, 5))
    assert [config.robust for config in small] == [True, False, False]
    assert small[2].forgetting < small[1].forgetting
    large = configs((LARGE_SLICE + 1,))
    assert len(large) == 1
    assert large[0].window < small[0].window


@pytest.mark.slow
def test_slots_double_where_all_are_in_use():
    model = CP.new(configs((6, 5))[0], (6, 5))
    full = model.state.config.max_rank
    assert model.state.capacity == full
    grown = replace(model, rank=full).grown().state
    assert grown.config.max_rank == min(2 * full, LARGEST_RANK)
    assert grown.core.factors.means[0].shape[1] == grown.config.max_rank
    assert model.grown() is model  # no component is in use


def test_large_slices_get_more_slots_only_where_the_weaker_half_is_worth_something(monkeypatch):
    monkeypatch.setattr(cp, "LARGE_SLICE", 20)
    model = replace(CP.new(configs((6, 5))[0], (6, 5)), rank=16)
    assert (model.state.capacity, cp.LARGEST_RANK_LARGE) == (16, 32)
    for worth, slots in ((cp.WORTH_MORE / 2, 16), (2 * cp.WORTH_MORE, 32)):
        monkeypatch.setattr(CP, "weaker_half", lambda _, worth=worth: worth)
        assert model.grown().state.capacity == slots
    largest = replace(model.grown(), rank=32)
    assert largest.grown() is largest


def test_worth_of_the_weaker_half_of_the_components():
    """One coefficient after the other: how far it usually changes from slice to slice, in observed noise."""
    rng = np.random.default_rng(3)
    design, noise, mask = rng.normal(size=(30, 5)), rng.uniform(0.5, 2, 30), rng.random(30) < 0.6
    precision, trust = rng.uniform(0.1, 10, 5), rng.uniform(0.5, 1, 30)
    signals = sorted(
        sum(design[i, r] ** 2 * trust[i] / noise[i] for i in np.flatnonzero(mask)) / precision[r] for r in range(5)
    )
    nothing = jnp.zeros(30)
    given = Regression(jnp.asarray(design), jnp.zeros(5), jnp.asarray(precision), nothing, nothing, noise, trust)
    expected = 0.5 * np.log(1 + sum(signals[:2]) / mask.sum())
    np.testing.assert_allclose(cp._weaker_half(given, jnp.asarray(mask)), expected, rtol=1e-5)


def test_the_unit_is_left_to_the_tracker():
    assert CP.new(configs((6, 5))[0], (6, 5)).state.unit == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 1e6, 1e11])
def test_factors_of_very_different_size_stay_finite(size):
    """In single precision, with hardly any noise."""
    core, values, mask, report = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float32) if leaf.dtype == np.float64 else leaf, made(LENGTH)
    )
    means = (core.factors.means[0].at[:, 0].multiply(size), *core.factors.means[1:])
    core = replace(core, factors=replace(core.factors, means=means))
    found = predicted(core, values * size, mask, (report[0] * 1e-10, report[1]))
    assert np.isfinite([found.mean, found.variance, found.noise]).all()


@pytest.mark.slow
def test_with_a_level_deviations_from_it_are_predicted(double):
    core, values, mask, (noise, probability) = made(3)
    rng = np.random.default_rng(9)
    level = levels.init(LENGTH, SHAPE, jnp.float64)
    means, walk = (jnp.asarray(rng.uniform(0.5, 1.5, (n, *SHAPE))) for n in (LENGTH, 1))
    level = replace(level, mean=means, variance=means / 3, walk_variance=walk[0])
    found = predicted(replace(core, level=level), values, mask, (noise, probability))
    expected = np.asarray(means)[int(core.window.newest)]
    variance = expected / 3 + np.asarray(walk)[0]
    away = jnp.where(mask, values - expected, 0)
    other = predicted(core, away, mask, (noise + variance, probability))
    np.testing.assert_allclose(found.mean, np.asarray(other.mean) + expected.ravel(), rtol=1e-6)
    np.testing.assert_allclose(found.variance, np.asarray(other.variance) + variance.ravel(), rtol=1e-6)
    np.testing.assert_allclose(found.noise, np.asarray(noise).ravel(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("filled", [3, 5])
def test_left_to_itself_a_slice_goes_to_what_it_usually_was(filled, double):
    core, *_ = made(filled)
    rows, newest, ordered = np.asarray(core.factors.row_means), int(core.window.newest), []
    for age in reversed(range(filled)):
        ordered.append(rows[(newest - age) % LENGTH])
    mean, ordered = np.mean(ordered, 0), np.array(ordered) - np.mean(ordered, 0)
    now, before = ordered[1:], ordered[:-1]
    pull = np.clip((now * before).sum(0) / np.maximum((before**2).sum(0), 1e-12), 0, 1)
    expected = [(mean + pull**ahead * ordered[-1]) @ design_of(core).T for ahead in (1, 2, 50)]
    np.testing.assert_allclose(rows_ahead(core, jnp.array([1.0, 2.0, 50.0])), expected, rtol=1e-5, atol=1e-7)


def test_rows_are_less_certain_the_more_usual_steps_have_passed_not_only_integers(double):
    core = made(LENGTH)[0]
    precisions = [
        np.asarray(cp._row_prior(core.factors.row_means, core.window, core.factors.precision, steps)[1])
        for steps in (0.5, 1.0, 1.5, 2.0, 10.0)
    ]
    assert all((longer < shorter).any() and (longer <= shorter).all() for shorter, longer in pairwise(precisions))
