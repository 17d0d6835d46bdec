"""The check that cannot be argued with: no coordinate update ever lowers the evidence lower bound."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds import MODELS, bound, left, slice_sums
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.model import elbo
from undertow.model import level as levels
from undertow.model.factors import predict, rank
from undertow.model.factors.rows import temporal_weights, update_axes
from undertow.model.noise import contaminated, gaussian_gamma, updates
from undertow.model.phases.sweep import smoothed_level


def coordinate_steps(model, settings, shape):
    """Every coordinate update as a function of the state, by name."""

    def axis_step(axis, relaxation=0.0):
        def step(core):
            weights = core.window.slice_weights(settings.forgetting)
            over = 1 if axis == 0 else 0
            seen, targets = model.weights_and_targets(core.outliers, core.window, weights)
            targets = targets - levels.mean_of(core.level)
            factors, _ = update_axes(
                core.factors, seen, targets, temporal_weights(settings, weights), [axis], over, relaxation
            )
            return replace(core, factors=factors)

        return step

    def precision(core):
        weights = temporal_weights(settings, core.window.slice_weights(settings.forgetting))
        return replace(core, factors=rank.update_precision(core.factors, weights, settings.precision_prior))

    def outlier_step(update):
        def step(core):
            weights = core.window.slice_weights(settings.forgetting)
            return replace(core, outliers=update(core.outliers, core.window, weights, *left(core)))

        return step

    def level(core):
        targets = core.window.values - predict.low_rank(core.factors)
        return replace(core, level=smoothed_level(settings, core.outliers, core.level, core.window, targets))

    if model is contaminated:
        own = {
            "ρ": lambda o, w, _, r, v: updates.update_probability(o, w, r**2 + v)[0],
            "π": lambda o, w, s, r, v: updates.update_rate(settings, o, s, slice_sums(o, w, r**2 + v)),
            "κ": lambda o, w, s, r, v: updates.update_ratio(settings, o, s, slice_sums(o, w, r**2 + v)),
            "φ": lambda o, w, _, r, v: updates.update_slice_scale(o, slice_sums(o, w, r**2 + v)),
            "τ": lambda o, w, s, r, v: updates.update_noise(settings, o, w, s, r**2 + v),
            "α": lambda o, w, s, r, v: updates.update_pooling(o, w, s, r**2 + v),
        }
    else:
        own = {
            "S": lambda o, w, s, r, v: gaussian_gamma.update_sparse(o, w, r),
            "γ": lambda o, w, s, r, v: gaussian_gamma.update_gamma(o, w),
            "τ": lambda o, w, s, r, v: gaussian_gamma.update_noise(settings, o, w, s, r, v),
        }
    steps = {f"axis {axis}": axis_step(axis) for axis in [*range(1, len(shape) + 1), 0]}
    steps |= {f"axis {axis}, relaxation": axis_step(axis, 0.95) for axis in [0, *range(len(shape), 0, -1)]}
    steps["λ"] = precision
    if settings.level:
        steps["m"] = level
    return steps | {name: outlier_step(update) for name, update in own.items()}


@cache
def trajectory(preset, case, **changes):
    """Compiled once per case: four rounds over all coordinates, the bound after each step."""
    shape, size, length = dense.PALETTE[case]
    settings, _ = dense.random_core(
        shape, size, length, preset, seed=0, **({"tau": "window"} if preset == "paper" else changes)
    )
    model = MODELS[preset]
    steps = coordinate_steps(model, settings, shape)

    moves = list(steps.values())

    def one_step(core, number):
        core = jax.lax.switch(number % len(moves), moves, core)
        return core, bound(settings, core)

    def run(core):
        return jax.lax.scan(one_step, core, jnp.arange(4 * len(moves)))[1]

    return jax.jit(run), list(steps)


@pytest.mark.parametrize("case", [0, 2, *(pytest.param(case, marks=pytest.mark.full) for case in (1, 3, 4))])
@pytest.mark.slow
@pytest.mark.parametrize("preset", MODELS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), observed=st.sampled_from([0.0, 0.1, 0.4, 0.8, 1.0]), short=st.integers(0, 2))
def test_no_update_lowers_the_elbo(preset, case, seed, observed, short):
    shape, size, length = dense.PALETTE[case]
    with jax.enable_x64(True):
        _, core = dense.random_core(
            shape, size, length, preset, seed, filled=max(length - short, 1), observed=observed, dead=bool(seed % 2)
        )
        run, names = trajectory(preset, case)
        assert_rises(run(core), names)


def assert_rises(bounds, names, but=()):
    """The first round brings every q to the form its own update gives it; from there on the bound must not fall."""
    bounds = [float(value) for value in bounds][len(names) - 1 :]
    for place, (before, after) in enumerate(pairwise(bounds)):
        name = names[place % len(names)]
        assert name in but or after >= before - 1e-9 * (1 + abs(before)), f"{name} lowers the bound {before} to {after}"


@pytest.mark.parametrize("forgetting", [1.0, 0.8])
@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.full), 2])
@pytest.mark.slow
def test_no_update_lowers_the_elbo_with_a_level(case, forgetting):
    """But the level's own, if older slices count less: it is ascent on the bound in which they do not."""
    shape, size, length = dense.PALETTE[case]
    with jax.enable_x64(True):
        run, names = trajectory("default", case, level=True, forgetting=forgetting)
        for seed in range(8):
            full, observed = seed % 2, (0.1, 0.4, 0.8, 1.0)[seed % 4]
            changes = {"filled": length - 1 + full, "observed": observed, "level": True, "forgetting": forgetting}
            _, core = dense.random_core(shape, size, length, "default", seed, **changes)
            rng = np.random.default_rng(seed)
            walk, start = (jnp.asarray(rng.uniform(0.05, 1, shape)) for _ in range(2))
            level = replace(core.level, walk_variance=walk, start_variance=start)
            assert_rises(run(replace(core, level=level)), names, but=() if forgetting == 1 else ("m",))


@pytest.mark.slow
@pytest.mark.parametrize("preset", MODELS)
def test_the_elbo_is_the_sum_of_its_dense_terms(preset):
    with jax.enable_x64(True):
        settings, core = dense.random_core((4, 3), 3, 3, preset, seed=8)
        weights = temporal_weights(settings, core.window.slice_weights(settings.forgetting))
        got = elbo.low_rank(core.factors, weights, settings.precision_prior)
        expected = dense.low_rank_elbo(core.factors, [float(value) for value in weights], settings.precision_prior)
    assert float(got) == pytest.approx(expected, rel=1e-10)
