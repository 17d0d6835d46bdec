"""Precisions, birth and death: definitions, and gains that equal the change of the whole bound."""

from dataclasses import replace

import dense
import jax.numpy as jnp
import numpy as np
import pytest
from bounds import bound

from undertow.model.factors import predict, rank
from undertow.model.noise import contaminated
from undertow.model.phases.birth import Birth, born, leading_directions
from undertow.model.phases.sweep import Progress
from undertow.model.step import crowded, moves, thinned

pytestmark = pytest.mark.usefixtures("double")
CASES = pytest.mark.parametrize(("shape", "size", "length"), dense.PALETTE)


@CASES
def test_precisions(shape, size, length):
    settings, core = dense.random_core(shape, size, length, "default", seed=9)
    share = np.random.default_rng(1).uniform(0.2, 1, length)
    new = rank.update_precision(core.factors, jnp.asarray(share), settings.precision_prior)
    c0 = d0 = settings.precision_prior
    for r in range(size):
        rate = d0
        for axis, (mean, spread) in enumerate(
            zip(dense.means_of(core.factors), dense.covariances_of(core.factors), strict=True)
        ):
            weight = share if axis == 0 else np.ones(mean.shape[0])
            rate += 0.5 * sum(weight[i] * (mean[i, r] ** 2 + spread[i, r, r]) for i in range(mean.shape[0]))
        np.testing.assert_allclose(new.precision_rate[r], rate, rtol=1e-10)
        np.testing.assert_allclose(new.precision_shape[r], c0 + 0.5 * (sum(shape) + share.sum()), rtol=1e-10)


def planted(shape, length, seed=3):
    """A state without components on data with one strong rank-one term."""
    settings, core = dense.random_core(shape, 3, length, "default", seed=seed, observed=0.8)
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=length) * 3
    for rows in shape:
        signal = signal[..., None] * rng.normal(size=rows)
    mask = np.asarray(core.window.mask)
    values = np.where(mask, signal + 0.1 * rng.normal(size=signal.shape), 0)
    empty = core.factors
    for component in range(3):
        empty = rank.without(empty, jnp.asarray(component))
    outliers = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    window = replace(core.window, values=jnp.asarray(values))
    return settings, replace(core, window=window, factors=empty, outliers=outliers), signal


def candidate(settings, core):
    """The newcomer for a state without components."""
    omega = core.window.slice_weights(settings.forgetting)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    count = omega @ core.window.mask.reshape(len(omega), -1).sum(1)
    fit = Birth(weights, targets, (weights * targets**2).sum(), count, omega, settings.precision_prior)
    draft = fit.draft()
    assert fit.promising(draft)
    return fit.finished(draft)


@pytest.mark.parametrize(("shape", "length"), [((12,), 6), ((8, 7), 4), ((5, 4, 3), 3)])
def test_a_newcomer_adds_what_it_says_and_finds_what_is_there(shape, length):
    settings, core, signal = planted(shape, length)
    newcomer = candidate(settings, core)
    factors = born(core.factors, newcomer)
    assert int(factors.active.sum()) == 1
    np.testing.assert_allclose(predict.low_rank(factors), newcomer.low_rank(), rtol=1e-9, atol=1e-12)
    spread = newcomer.square() - newcomer.low_rank() ** 2
    np.testing.assert_allclose(predict.variance(factors), spread, rtol=1e-6, atol=1e-9)
    omega = core.window.slice_weights(settings.forgetting)
    change = rank.elbo(factors, omega, settings.precision_prior) - rank.elbo(
        core.factors, omega, settings.precision_prior
    )
    np.testing.assert_allclose(newcomer.elbo, change, rtol=1e-8)
    assert bound(contaminated, settings, replace(core, factors=factors)) > bound(contaminated, settings, core)
    found = np.asarray(predict.low_rank(factors))
    assert np.linalg.norm(found - signal) < 0.2 * np.linalg.norm(signal)


def progress(core):
    """As after a sweep that settled."""
    residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
    zero = jnp.asarray(0, jnp.int32)
    return Progress(
        factors=core.factors,
        outliers=core.outliers,
        level=None,
        residual=residual,
        variance=variance,
        newest=core.window.values[core.window.newest],
        surprised=jnp.asarray(False),
        too_large=jnp.asarray(False),
        warm=jnp.asarray(False),
        moving=jnp.asarray(False),
        iterations=zero,
        most=zero,
        rounds=zero,
        changed=jnp.asarray(False),
        thinning=jnp.asarray(True),
        failed=zero,
    )


def test_moves_bear_what_is_there_and_nothing_else():
    """Births are judged by the whole bound, after the outlier model has seen the new residuals."""
    settings, core, signal = planted((8, 7), 4)
    after = moves(settings, core.window, progress(core))
    assert bool(after.changed)
    factors = after.factors
    grown = replace(core, factors=factors, outliers=after.outliers)
    assert bound(contaminated, settings, grown) > bound(contaminated, settings, core)
    assert np.linalg.norm(np.asarray(predict.low_rank(factors)) - signal) < 0.2 * np.linalg.norm(signal)
    noise = np.random.default_rng(0).normal(size=core.window.values.shape) * np.asarray(core.window.mask)
    window = replace(core.window, values=jnp.asarray(noise))
    settled = contaminated.init(settings, (8, 7), jnp.float64)
    for _ in range(5):
        omega = window.slice_weights(settings.forgetting)
        settled = contaminated.update(settings, settled, window, omega, window.values, jnp.zeros_like(window.values))
    after = moves(settings, window, progress(replace(core, window=window, outliers=settled)))
    assert not after.changed
    assert not after.factors.active.any()


def test_a_full_house_takes_no_newcomer():
    settings, core, _ = planted((8, 7), 4)
    full = replace(core.factors, active=jnp.ones(3, bool), means=tuple(mean + 1.0 for mean in core.factors.means))
    spread = tuple(covariance + 1e-3 * jnp.eye(3) for covariance in core.factors.covariances)
    full = replace(full, covariances=spread, row_covariances=core.factors.row_covariances + 1e-3 * jnp.eye(3))
    full = replace(full, row_means=core.factors.row_means + jnp.asarray([3.0, 2.0, 1.0]))
    after = moves(settings, core.window, progress(replace(core, factors=full)))
    assert int(after.factors.active.sum()) <= 3


@CASES
def test_a_death_gains_what_it_says(shape, size, length):
    settings, core = dense.random_core(shape, size, length, "default", seed=10)
    shrunk = replace(core.factors, means=tuple(mean.at[:, 0].multiply(1e-9) for mean in core.factors.means))
    core = replace(core, factors=shrunk)
    omega = core.window.slice_weights(settings.forgetting)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    residual, variance = targets - predict.low_rank(core.factors), predict.variance(core.factors)
    smaller = rank.without(core.factors, jnp.argmin(jnp.where(core.factors.active, rank.sizes(core.factors), jnp.inf)))
    change = bound(contaminated, settings, replace(core, factors=smaller)) - bound(contaminated, settings, core)
    after, residual_after, variance_after, dies = rank.death(
        core.factors, residual, variance, weights, omega, settings.precision_prior
    )
    assert bool(dies) == bool(change > 0)
    assert int(after.active.sum()) == int(core.factors.active.sum()) - int(dies)
    np.testing.assert_allclose(residual_after, targets - predict.low_rank(after), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variance_after, predict.variance(after), rtol=1e-9, atol=1e-12)


def test_leading_directions_of_a_rank_one_tensor():
    rng = np.random.default_rng(2)
    vectors = [rng.normal(size=size) for size in (3, 6, 5, 4)]
    tensor = np.einsum("t,i,j,k->tijk", *vectors)
    for found, vector in zip(leading_directions(jnp.asarray(tensor)), vectors, strict=True):
        assert abs(found @ vector) == pytest.approx(np.linalg.norm(vector), rel=1e-9)


def two_terms(columns):
    """A state with these components (lists of columns: time, then modes), on data with two terms of random columns."""
    rng = np.random.default_rng(5)
    truth = [rng.normal(size=(rows, 2)) for rows in (6, 9, 8)]
    settings, core = dense.random_core((9, 8), 4, 6, "default", seed=4, observed=0.9)
    signal = np.einsum("tr,ir,jr->tij", *truth)
    mask = np.asarray(core.window.mask)
    values = np.where(mask, signal + 0.05 * rng.normal(size=signal.shape), 0)
    time, *modes = (np.stack(axis, axis=1) for axis in zip(*columns(*truth), strict=True))
    active = jnp.arange(4) < time.shape[1]

    def padded(mean):
        return jnp.asarray(np.pad(mean, [(0, 0), (0, 4 - mean.shape[1])]))

    def certain(rows):
        return jnp.broadcast_to(jnp.diag(1e-4 * active), (rows, 4, 4))

    factors = replace(
        core.factors,
        means=tuple(padded(mode) for mode in modes),
        covariances=tuple(certain(mode.shape[0]) for mode in modes),
        row_means=padded(time),
        row_covariances=certain(6),
        active=active,
    )
    outliers = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    window = replace(core.window, values=jnp.asarray(values))
    core = replace(core, window=window, factors=factors, outliers=outliers)
    start = progress(core)
    residual = window.values - predict.low_rank(factors)
    return settings, core, replace(start, residual=residual, variance=predict.variance(factors)), signal


def entangled(time, left, right):
    """The same two terms by four: sums and differences in time, so that none of them can go alone."""
    plus, minus = time.sum(axis=1), time[:, 0] - time[:, 1]
    return [(plus / 2, left[:, r], right[:, r]) for r in (0, 1)] + [
        (sign * minus / 2, left[:, r], right[:, r]) for r, sign in ((0, 1), (1, -1))
    ]


def test_entangled_components_make_room():
    settings, core, start, signal = two_terms(entangled)
    np.testing.assert_allclose(predict.low_rank(start.factors), signal, rtol=1e-9)
    assert bool(crowded(start))
    after = thinned(settings, core.window, start)
    assert int(after.factors.active.sum()) < 4
    assert int(moves(settings, core.window, after).factors.active.sum()) == 2  # what has shrunk away meanwhile dies
    found = predict.low_rank(after.factors)
    assert np.linalg.norm(found - signal) < 0.1 * np.linalg.norm(signal)
    np.testing.assert_allclose(after.residual, core.window.values - found, atol=1e-12)
    assert not bool(after.thinning)


def test_components_that_are_needed_stay():
    settings, core, start, _ = two_terms(
        lambda time, left, right: [(time[:, r], left[:, r], right[:, r]) for r in (0, 1)]
    )
    assert not bool(crowded(start))
    after = thinned(settings, core.window, start)  # asked all the same
    np.testing.assert_array_equal(after.factors.active, start.factors.active)
    np.testing.assert_array_equal(after.residual, start.residual)


def test_likeness_is_the_product_of_the_largest_cosines():
    _, core = dense.random_core((5, 4), 4, 6, "default", seed=2)
    factors = core.factors
    active = np.flatnonzero(factors.active)
    assert 2 < len(active) < 4  # some are dead, and each has a choice
    expected = np.zeros(4)
    for r in active:
        expected[r] = np.prod(
            [
                max(
                    abs(mean[:, r] @ mean[:, s]) / np.linalg.norm(mean[:, r]) / np.linalg.norm(mean[:, s])
                    for s in active
                    if s != r
                )
                for mean in dense.means_of(factors)
            ]
        )
    np.testing.assert_allclose(rank.entanglement(factors), expected, rtol=1e-9)
