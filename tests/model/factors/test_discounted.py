"""Discounted statistics: every sum against loops, nothing lost where nothing changes, and the ELBO never falls."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds import bound, slice_sums

import undertow as ut
from undertow.lab.synthetic.streams import drifting
from undertow.model.defaults import RETENTION_PRIOR
from undertow.model.factors import discounted, predict, rank
from undertow.model.factors.rows import update_axes
from undertow.model.linalg.symmetric import pack, unpack
from undertow.model.noise import contaminated, updates
from undertow.model.noise.pooled import better_pool
from undertow.model.phases.begin import write
from undertow.model.phases.candidate import CandidateFit, added
from undertow.model.phases.evict import evict as evict_eagerly
from undertow.model.step import init_core
from undertow.model.step import step as model_step
from undertow.model.types import Window

evict = jax.jit(evict_eagerly)
double = pytest.mark.usefixtures("double")


def start(shape, size, length, seed, **changes):
    """A full random window, and nothing evicted yet."""
    settings, core = dense.random_core(shape, size, length, "default", seed, memory="recursive", **changes)
    factors = replace(core.factors, discounted=discounted.init_rows(settings, shape, jnp.dtype("float64")))
    outliers = replace(core.outliers, discounted=discounted.init_noise(settings, shape, jnp.dtype("float64")))
    return settings, replace(core, factors=factors, outliers=outliers)


def with_evicted(shape, size, length, seed, **changes):
    """The same after every slice of the window was evicted once."""
    settings, core = start(shape, size, length, seed, **changes)
    newest = core.window.newest
    for slot in range(length):
        core = evict(settings, replace(core, window=replace(core.window, newest=jnp.asarray(slot, jnp.int32))))
    return settings, replace(core, window=replace(core.window, newest=newest))


def elsewhere(core, seed):
    """The core with statistics that would have the rows somewhere else, so that they are not to be retained."""
    rng = np.random.default_rng(seed)
    evicted = core.factors.discounted
    centre = tuple(
        jnp.asarray(3 * rng.normal(size=mean.shape) * np.asarray(core.factors.active)) for mean in evicted.centre
    )
    projection = tuple(
        jnp.einsum("irk,ik->ir", unpack(gram), mean) for gram, mean in zip(evicted.gram, centre, strict=True)
    )
    return replace(
        core, factors=replace(core.factors, discounted=replace(evicted, centre=centre, projection=projection))
    )


def with_level(core, seed=0):
    """The core with a level that has something to say."""
    rng = np.random.default_rng(seed)
    mean, variance = rng.normal(size=core.level.mean.shape), rng.uniform(0, 1, core.level.mean.shape)
    return replace(core, level=replace(core.level, mean=jnp.asarray(mean), variance=jnp.asarray(variance)))


@pytest.mark.slow
@double
@dense.CASES
def test_an_evicted_slice_is_summed_as_the_definition_says(shape, size, length):
    settings, core = start(shape, size, length, seed=1, level=True)
    core = with_level(core)
    retention = tuple(jnp.asarray(np.random.default_rng(2).uniform(0.3, 1, rows)) for rows in shape)
    means, covariances = dense.means_of(core.factors), dense.covariances_of(core.factors)
    state = {name: np.asarray(value) for name, value in vars(core.outliers).items() if name != "discounted"}
    low_rank, variance = dense.low_rank(core.factors), dense.variance(core.factors)
    tau, typical = state["noise_shape"] / state["noise_rate"], state["pool_rate"] / state["pool_shape"]
    gram = [np.zeros((rows, size, size)) for rows in shape]
    projection = [np.zeros((rows, size)) for rows in shape]
    counts, sums, evicted_rows = np.zeros(shape), np.zeros(shape), np.zeros((3, size))
    flagged = clean = energy = 0.0
    active = np.asarray(core.factors.active)
    for turn in range(2):
        core = replace(
            core, factors=replace(core.factors, discounted=replace(core.factors.discounted, retention=retention))
        )
        slot = (int(core.window.newest) + 1) % length
        for mode in range(len(shape)):
            decay = 0.8 * np.asarray(retention[mode])
            gram[mode] *= decay[:, None, None]
            projection[mode] *= decay[:, None]
        counts, sums, evicted_rows = 0.8 * counts, 0.8 * sums, 0.8 * evicted_rows
        flagged, clean, energy = 0.8 * flagged, 0.8 * clean, 0.8 * energy
        for i in dense.entries(counts):
            if not core.window.mask[(slot, *i)]:
                continue
            rho, target = state["probability"][(slot, *i)], float(core.window.values[(slot, *i)])
            target -= float(core.level.mean[(slot, *i)])
            square = (
                (target - low_rank[(slot, *i)]) ** 2 + variance[(slot, *i)] + float(core.level.variance[(slot, *i)])
            )
            left = (1 - rho) / state["slice_scale"][slot] + rho / state["ratio"]
            for mode in range(len(shape)):
                moment, mean = np.ones((size, size)), np.ones(size)
                for axis, index in enumerate((slot, *i)):
                    if axis != mode + 1:
                        own = means[axis][index]
                        moment, mean = moment * (np.outer(own, own) + covariances[axis][index]), mean * own
                gram[mode][i[mode]] += 0.8**length * left * tau[i] * moment
                projection[mode][i[mode]] += 0.8**length * left * tau[i] * target * mean
            counts[i] += 0.8**length
            sums[i] += 0.8**length * left * square / typical
            flagged += 0.8**length * rho
            clean += 0.8**length * (1 - rho)
            energy += 0.8**length * rho * tau[i] * square
        for r in np.flatnonzero(active):
            own = covariances[0][slot, r, r]
            evicted_rows[:, r] += 0.8**length * np.asarray([1, means[0][slot, r] ** 2 + own, 1 + np.log(own)])
        core = evict(settings, core)
        core = replace(core, window=replace(core.window, newest=jnp.asarray(slot, jnp.int32)))
        got, noise = core.factors.discounted, core.outliers.discounted
        for mode in range(len(shape)):
            np.testing.assert_allclose(unpack(got.gram[mode]), gram[mode], rtol=1e-10, atol=1e-14)
            np.testing.assert_allclose(got.projection[mode], projection[mode], rtol=1e-10, atol=1e-13)
            here = np.einsum("irk,ik->ir", unpack(got.gram[mode]), got.centre[mode])
            np.testing.assert_allclose(here, projection[mode], rtol=1e-5, atol=1e-7, err_msg=f"turn {turn}")
        for name, expected in (("row_count", 0), ("row_square", 1), ("row_entropy", 2)):
            np.testing.assert_allclose(getattr(got, name), evicted_rows[expected], rtol=1e-10)
        for name, expected in (
            ("counts", counts),
            ("sums", sums),
            ("flagged", flagged),
            ("clean", clean),
            ("energy", energy),
        ):
            np.testing.assert_allclose(getattr(noise, name), expected, rtol=1e-10)


@pytest.mark.slow
@double
def test_nothing_is_evicted_from_a_window_that_is_not_full():
    settings, core = start((4, 3), 3, 3, seed=1, filled=2)
    after = evict(settings, core)
    for leaf in jax.tree.leaves(
        (after.factors.discounted.gram, after.factors.discounted.projection, after.outliers.discounted)
    ):
        assert not leaf.any()


@pytest.mark.slow
@double
def test_a_short_window_and_its_statistics_know_as_much_as_a_long_window():
    """With temporal rows, outliers and the other factors held fixed, the sums are sufficient."""
    shape, size, long, short = (4, 3), 3, 7, 4
    settings, whole = dense.random_core(shape, size, long, "default", seed=3)
    brief = replace(settings, window=short, memory="recursive")
    order = [(int(whole.window.newest) + 1 + age) % long for age in range(long)]  # oldest first
    _, core = start(shape, size, short, seed=4)
    core = replace(
        core,
        factors=replace(whole.factors, row_means=core.factors.row_means, row_covariances=core.factors.row_covariances,
                        discounted=core.factors.discounted),
        outliers=replace(whole.outliers, probability=core.outliers.probability,
                         slice_scale=core.outliers.slice_scale, discounted=core.outliers.discounted),
        window=Window(core.window.values, core.window.mask, jnp.asarray(short - 1), jnp.asarray(0)),
    )  # fmt: skip
    for slot in order:
        core = evict(brief, core)
        window = write(core.window, whole.window.values[slot], whole.window.mask[slot])
        place = window.newest
        factors = replace(
            core.factors,
            row_means=core.factors.row_means.at[place].set(whole.factors.row_means[slot]),
            row_covariances=core.factors.row_covariances.at[place].set(whole.factors.row_covariances[slot]),
        )
        outliers = replace(
            core.outliers,
            probability=core.outliers.probability.at[place].set(whole.outliers.probability[slot]),
            slice_scale=core.outliers.slice_scale.at[place].set(whole.outliers.slice_scale[slot]),
        )
        core = replace(core, window=window, factors=factors, outliers=outliers)
    updated = jax.jit(update_axes, static_argnums=(4, 5))
    for axis in (1, 2):
        rows = []
        for one in (whole, core):
            omega = one.window.slice_weights(settings.forgetting)
            weights, targets = contaminated.weights_and_targets(one.outliers, one.window, omega)
            rows.append(updated(one.factors, weights, targets, omega, (axis,), 0)[0])
        np.testing.assert_allclose(dense.means_of(rows[1])[axis], dense.means_of(rows[0])[axis], rtol=1e-10)
        np.testing.assert_allclose(dense.covariances_of(rows[1])[axis], dense.covariances_of(rows[0])[axis], rtol=1e-10)
    omegas = [one.window.slice_weights(settings.forgetting) for one in (whole, core)]
    one, other = (
        rank.update_precision(case.factors, omega, settings.precision_prior)
        for case, omega in zip((whole, core), omegas, strict=True)
    )
    active = np.asarray(whole.factors.active)
    np.testing.assert_allclose(other.precision[active], one.precision[active], rtol=1e-10)
    one, other = (
        updates.update_rate(
            settings, case.outliers, omega, slice_sums(case.outliers, case.window, case.window.values**2)
        )
        for case, omega in zip((whole, core), omegas, strict=True)
    )
    np.testing.assert_allclose((other.rate_a, other.rate_b), (one.rate_a, one.rate_b), rtol=1e-10)


def coordinate_steps(settings, shape):
    """Every coordinate update as a function of the state, by name."""

    def axis_step(axis):
        def step(core):
            omega = core.window.slice_weights(settings.forgetting)
            weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
            return replace(
                core,
                factors=update_axes(core.factors, weights, targets, omega, [axis], 1 if axis == 0 else 0)[0],
            )

        return step

    def precision(core):
        omega = core.window.slice_weights(settings.forgetting)
        return replace(core, factors=rank.update_precision(core.factors, omega, settings.precision_prior))

    def outlier_step(update):
        def step(core):
            omega = core.window.slice_weights(settings.forgetting)
            residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
            return replace(core, outliers=update(core.outliers, core.window, omega, residual**2 + variance))

        return step

    own = {
        "ρ": lambda o, w, _, e: updates.update_probability(o, w, e)[0],
        "π": lambda o, w, s, e: updates.update_rate(settings, o, s, slice_sums(o, w, e)),
        "κ": lambda o, w, s, e: updates.update_ratio(settings, o, s, slice_sums(o, w, e)),
        "φ": lambda o, w, _, e: updates.update_slice_scale(o, slice_sums(o, w, e)),
        "τ": lambda o, w, s, e: updates.update_noise(settings, o, w, s, e),
    }
    steps = {f"axis {axis}": axis_step(axis) for axis in [*range(1, len(shape) + 1), 0]}
    steps |= {"λ": precision, "δ": lambda core: replace(core, factors=discounted.update_retention(core.factors))}
    return steps | {name: outlier_step(update) for name, update in own.items()}


@cache
def trajectory(case):
    """Compiled once per case: four rounds over all coordinates, the bound after each step."""
    shape, size, length = dense.PALETTE[case]
    settings, _ = start(shape, size, length, seed=0)
    steps = coordinate_steps(settings, shape)

    def one_step(core, number):
        core = jax.lax.switch(number % len(steps), list(steps.values()), core)
        return core, bound(settings, core)

    return jax.jit(lambda core: jax.lax.scan(one_step, core, jnp.arange(4 * len(steps)))), list(steps)


@pytest.mark.slow
@double
@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.full), 2])
def test_no_update_lowers_the_elbo_with_discounted_statistics(case):
    shape, size, length = dense.PALETTE[case]
    run, names = trajectory(case)
    moved = []
    for seed in range(8):
        _, core = with_evicted(shape, size, length, seed, observed=(0.4, 1.0)[seed % 2], dead=seed > 3)
        end, bounds = run(elsewhere(core, seed))
        moved.append(min(float(retention.min()) for retention in end.factors.discounted.retention))
        for place, (before, after) in enumerate(pairwise(bounds[len(names) - 1 :])):
            name = names[place % len(names)]
            assert after >= before - 1e-9 * (1 + abs(before)), f"{name} lowers the bound from {before} to {after}"
    assert min(moved) < 1


@pytest.mark.slow
@double
def test_rows_that_stay_keep_their_statistics_and_rows_that_move_lose_them():
    _, core = with_evicted((4, 3), 3, 3, seed=5)
    there = replace(
        core.factors,
        means=core.factors.discounted.centre,
        covariances=tuple(0 * covariance for covariance in core.factors.covariances),
    )
    assert all((retention == 1).all() for retention in discounted.update_retention(there).discounted.retention)
    away = replace(there, means=(there.means[0].at[1].add(50.0 * core.factors.active), *there.means[1:]))
    retention = discounted.update_retention(away).discounted.retention
    assert (np.asarray(retention[0]) == 1).tolist() == [True, False, True, True]
    gram = np.asarray(unpack(core.factors.discounted.gram[0]))[1]
    moved = 50.0 * np.asarray(core.factors.active)
    np.testing.assert_allclose(
        retention[0][1], RETENTION_PRIOR * core.factors.active.sum() / (moved @ gram @ moved), rtol=1e-10
    )


@pytest.mark.slow
@double
@dense.CASES
def test_pruning_counts_the_statistics_and_leaves_a_free_slot(shape, size, length):
    settings, core = with_evicted(shape, size, length, seed=6, dead=False)
    retention = tuple(jnp.asarray(np.random.default_rng(2).uniform(0.3, 1, rows)) for rows in shape)
    factors = replace(core.factors, discounted=replace(core.factors.discounted, retention=retention))
    smaller = rank.without(factors, jnp.asarray(0))

    def terms(one):
        total = 0.0
        for mode, rows in enumerate(shape):
            for i in range(rows):
                mean, covariance = np.asarray(one.means[mode][i]), np.asarray(one.covariances[mode][i])
                gram = np.asarray(unpack(factors.discounted.gram[mode][i]))
                quadratic = np.trace(gram @ (np.outer(mean, mean) + covariance))
                total += float(retention[mode][i]) * (
                    np.asarray(factors.discounted.projection[mode][i]) @ mean - quadratic / 2
                )
        return total

    got = jax.jit(discounted.change)(factors, smaller, factors.discounted)
    np.testing.assert_allclose(got, terms(smaller) - terms(factors), rtol=1e-9, atol=1e-9)
    for mode in range(len(shape)):
        assert not unpack(smaller.discounted.gram[mode])[:, 0].any()
        assert not smaller.discounted.projection[mode][:, 0].any()
        np.testing.assert_array_equal(
            unpack(smaller.discounted.gram[mode])[:, 1:, 1:], unpack(factors.discounted.gram[mode])[:, 1:, 1:]
        )
    assert float(smaller.discounted.row_count[0]) == float(smaller.discounted.row_square[0]) == 0
    omega = core.window.slice_weights(settings.forgetting)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)

    @jax.jit
    def grown(factors):
        fit = CandidateFit(weights, targets, (weights * targets**2).sum(), (omega > 0).sum(), omega, 0.1)
        return added(factors, fit.fitted(), 0)

    assert not pack(unpack(grown(smaller).discounted.gram[0])[:, :1, :1]).any()


@pytest.mark.slow
@double
def test_the_statistics_say_how_entries_differ_and_the_window_how_large_the_noise_is():
    _, core = start((4, 3), 1, 2, seed=7)
    rng = np.random.default_rng(7)
    counts, sums = rng.uniform(0, 3, (4, 3)), rng.uniform(0, 3, (4, 3))
    evicted = replace(core.outliers.discounted, counts=jnp.asarray(10 * counts + 1), sums=jnp.asarray(5 * sums + 2))
    state = replace(core.outliers, discounted=evicted)
    for _ in range(30):
        state = discounted.update_noise(state, evicted, jnp.asarray(counts), jnp.asarray(sums))
    alpha, b = float(state.pool_shape), float(state.pool_rate)
    shapes, scale = alpha + np.asarray(evicted.counts) / 2, 1 + np.asarray(evicted.sums) / (2 * alpha)
    np.testing.assert_allclose(state.noise_shape, shapes + counts / 2, rtol=1e-10)
    np.testing.assert_allclose(state.noise_rate, b * scale + sums / 2, rtol=1e-10)

    def elbo(rate):
        return (shapes * np.log(rate * scale) - (shapes + counts / 2) * np.log(rate * scale + sums / 2)).sum()

    assert elbo(b) >= max(elbo(b * 0.999), elbo(b * 1.001))


@pytest.mark.slow
@double
def test_pooling_keeps_the_size_of_the_statistics():
    _, core = with_evicted((4, 3), 2, 3, seed=8)
    state, evicted = core.outliers, core.outliers.discounted
    rng = np.random.default_rng(8)
    counts, sums = jnp.asarray(rng.uniform(1, 3, (4, 3))), jnp.asarray(rng.uniform(0, 3, (4, 3)))
    new = discounted.update_pooling(state, evicted, counts, sums)
    typical, then = (float(contaminated.typical_noise(one)) for one in (state, new))
    np.testing.assert_allclose(then * new.discounted.sums, typical * evicted.sums, rtol=1e-10)
    shape, rate = discounted.noise_prior(new)
    np.testing.assert_allclose(new.noise_shape, shape + counts / 2, rtol=1e-10)
    np.testing.assert_allclose(new.noise_rate, rate + sums / 2, rtol=1e-10)
    whole = sums + typical * evicted.sums
    best = better_pool(state.pool_shape, state.pool_rate, counts + evicted.counts, whole)
    np.testing.assert_allclose((new.pool_shape, new.pool_rate), best, rtol=1e-10)


def leaves(state):
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state.core)]


@pytest.mark.slow
def test_the_state_does_not_grow_and_the_step_is_compiled_once():
    config = ut.make_config("fast", max_rank=3, window=4)
    state = ut.init(config, (6, 5))
    first, before = leaves(state), model_step.count()
    for x in drifting((6, 5), 2, slices=12, seed=0).values:
        state, result = ut.step(state, x)
    assert leaves(state) == first
    assert model_step.count() == before + 1
    assert np.isfinite(result.low_rank).all()
    assert float(state.core.factors.discounted.row_count.max()) > 0


@pytest.mark.slow
def test_without_recursive_memory_there_are_none():
    core = init_core(ut.make_config(max_rank=3, window=3).settings(), (6, 5))
    assert core.factors.discounted is None
    assert core.outliers.discounted is None


@pytest.mark.full
def test_a_short_window_remembers_evicted_slices():
    """Sparse slices: three of them say too little about the factors."""
    stream = drifting((15, 15), 3, slices=50, observed=0.25, drift=0.0, seed=1)
    errors = {}
    for memory in ("window", "recursive"):
        state = ut.init(ut.make_config(memory=memory, max_rank=5, window=4), (15, 15))
        found = []
        for x, truth in zip(stream.values, stream.low_rank, strict=True):
            state, result = ut.step(state, x)
            found.append(np.linalg.norm(result.low_rank - truth) / np.linalg.norm(truth))
        errors[memory] = np.median(found[25:])
    assert errors["recursive"] < 0.7 * errors["window"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"level": True}, marks=pytest.mark.full),
        {"robust": False},
        {"noise": "shared"},
        {"scale": "log"},
    ],
)
def test_every_variant_takes_recursive_memory(settings):
    stream = drifting((6, 5), 2, slices=15, observed=0.8, seed=2)
    model = ut.RobustCP("fast", max_rank=3, window=4, **settings)
    results = [model.update(x) for x in stream.values]
    assert all(np.isfinite(result.low_rank).all() and np.isfinite(result.std).all() for result in results)
    assert np.isfinite(model.smoothed(2).low_rank).all()


def test_what_starts_anew_keeps_no_statistics():
    with pytest.raises(ValueError, match="memory must be 'window' with start='svd'"):
        ut.make_config("paper", memory="recursive")
