"""The default outlier model: each coordinate step against its definition."""

from dataclasses import replace
from functools import partial

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma, expit

from undertow.model import types as state
from undertow.model.factors.rank import choose
from undertow.model.noise import contaminated, mixture
from undertow.model.step import moves_likely

pytestmark = pytest.mark.usefixtures("double")
CASES = pytest.mark.parametrize(("shape", "size", "length"), dense.PALETTE)


def setting(shape, size, length, seed=5):
    settings, core = dense.random_core(shape, size, length, "default", seed=seed, filled=max(length - 1, 1))
    square = np.random.default_rng(seed).uniform(0, 4, core.window.values.shape)
    weights = dense.slice_weights(settings, core.window)
    np.testing.assert_allclose(core.window.slice_weights(settings.forgetting), weights, rtol=1e-14)
    return settings, core, square, weights, {name: np.asarray(value) for name, value in vars(core.outliers).items()}


def quenched(settings, state, window, omega, residual, variance):
    """As a step ends."""
    wide = contaminated.too_wide(settings, state, window, residual, variance)
    return choose(wide, contaminated.colder(settings, state, window, omega, residual, variance), state)


@CASES
def test_weights_are_the_trusted_part_of_the_precision(shape, size, length):
    _, core, _, omega, s = setting(shape, size, length)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    for index in dense.entries(weights):
        t, i, rho = index[0], index[1:], s["probability"][index]
        tau = s["noise_shape"][i] / s["noise_rate"][i]
        expected = (
            omega[t] * tau * ((1 - rho) / s["slice_scale"][t] + rho / s["ratio"]) if core.window.mask[index] else 0
        )
        np.testing.assert_allclose(weights[index], expected, rtol=1e-10)
    np.testing.assert_array_equal(targets, core.window.values)


@CASES
def test_probabilities_rate_ratio_and_scales(shape, size, length):
    settings, core, square, omega, s = setting(shape, size, length)
    mask = np.asarray(core.window.mask)
    tau = s["noise_shape"] / s["noise_rate"]
    new = contaminated.update_probability(core.outliers, core.window, square)
    for index in dense.entries(square):
        phi = s["slice_scale"][index[0]]
        clean = digamma(s["rate_b"]) - 0.5 * np.log(phi) - 0.5 * tau[index[1:]] * square[index] / phi
        outlying = digamma(s["rate_a"]) - 0.5 * np.log(s["ratio"]) - 0.5 * tau[index[1:]] * square[index] / s["ratio"]
        expected = expit(outlying - clean) if mask[index] else 0
        np.testing.assert_allclose(new.probability[index], expected, rtol=1e-10)

    rho = s["probability"]
    per_entry = omega.reshape(-1, *[1] * len(shape))
    new = contaminated.update_rate(settings, core.outliers, core.window, omega)
    np.testing.assert_allclose(new.rate_a, 0.02 * 50 + (per_entry * rho).sum(), rtol=1e-10)
    np.testing.assert_allclose(new.rate_b, 0.98 * 50 + (per_entry * mask * (1 - rho)).sum(), rtol=1e-10)

    new = contaminated.update_ratio(settings, core.outliers, core.window, omega, square * 100)
    expected = (per_entry * rho * tau * square * 100).sum() / (per_entry * rho).sum()
    np.testing.assert_allclose(new.ratio, max(expected, 30, s["slice_scale"].max()), rtol=1e-10)

    new = contaminated.update_slice_scale(core.outliers, core.window, square)
    for t in range(length):
        clean = mask[t] * (1 - rho[t])
        ratio = (30 + (clean * tau * square[t]).sum()) / (30 + clean.sum())
        np.testing.assert_allclose(new.slice_scale[t], min(ratio, s["ratio"]), rtol=1e-10)


@CASES
def test_noise_of_entries(shape, size, length):
    settings, core, square, omega, s = setting(shape, size, length)
    counts, sums = np.zeros(shape), np.zeros(shape)
    for index in dense.entries(square):
        if core.window.mask[index]:
            rho = s["probability"][index]
            counts[index[1:]] += omega[index[0]]
            trust = (1 - rho) / s["slice_scale"][index[0]] + rho / s["ratio"]
            sums[index[1:]] += omega[index[0]] * trust * square[index]
    new = contaminated.update_noise(settings, core.outliers, core.window, omega, square)
    np.testing.assert_allclose(new.noise_shape, s["pool_shape"] + counts / 2, rtol=1e-10)
    np.testing.assert_allclose(new.noise_rate, new.pool_rate + sums / 2, rtol=1e-10)


@CASES
def test_evidence(shape, size, length):
    settings, core, square, omega, _ = setting(shape, size, length)
    residual = np.sqrt(square / 2)
    got = contaminated.elbo(settings, core.outliers, core.window, omega, residual, square / 2)
    np.testing.assert_allclose(
        got, dense.contaminated_evidence(settings, core.outliers, core.window, square), rtol=1e-10
    )


def test_a_row_that_was_shut_out_is_reconsidered():
    """A row whose entries are all flagged teaches its factor nothing; reheating must give it its weight back."""
    settings, core = dense.random_core((6, 5), 2, 4, "default", seed=3, observed=1.0)
    omega = core.window.slice_weights(settings.forgetting)
    calm = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    assert not contaminated.shut_out(calm, core.window, omega)
    stuck = replace(calm, probability=calm.probability.at[:, 2].set(1.0), noise_rate=calm.noise_rate * 1e-3)
    assert contaminated.shut_out(stuck, core.window, omega)
    hot = contaminated.reheated(settings, stuck, core.factors, core.window, omega, core.level)
    assert not contaminated.shut_out(hot, core.window, omega)
    assert (mixture.precision(hot) < mixture.precision(stuck)).all()


def evidence_of(settings, state, window, omega, residual, spread):
    return float(contaminated.elbo(settings, state, window, omega, residual, spread))


def test_a_quench_never_lowers_the_evidence():
    shape, size, length = dense.PALETTE[1]
    settings, *_ = setting(shape, size, length)
    quench, gains = jax.jit(partial(quenched, settings)), []
    for seed in range(12):
        _, core, square, omega, _ = setting(shape, size, length, seed=seed)
        # From noise far too wide, where a quench is tried, to noise too small, where it is not.
        factor = 10.0 ** (3 - seed // 2)
        hot = replace(core.outliers, pool_rate=core.outliers.pool_rate * factor)
        hot = replace(hot, noise_rate=hot.noise_rate * factor)
        residual, spread = np.sqrt(square / 2), square / 2
        hot = contaminated.update_probability(hot, core.window, square)
        cold = quench(hot, core.window, omega, residual, spread)
        before, after = (evidence_of(settings, one, core.window, omega, residual, spread) for one in (hot, cold))
        assert after >= before - 1e-9 * abs(before)
        gains.append(after - before)
    assert max(gains) > 1
    assert min(gains) == 0


def many_outliers(**changes):
    """A fifth of all entries 12 noise deviations away, and the noise that explains all of them, after many updates."""
    settings, core = dense.random_core((12, 10), 2, 6, "default", seed=2, observed=1.0, **changes)
    rng = np.random.default_rng(2)
    outlying = rng.random((6, 12, 10)) < 0.2
    residual = jnp.asarray(rng.normal(size=outlying.shape) + 12 * outlying * rng.choice([-1, 1], outlying.shape))
    omega, nothing = core.window.slice_weights(settings.forgetting), jnp.zeros_like(residual)
    state = contaminated.init(settings, (12, 10), jnp.dtype("float64"))
    state = replace(state, pool_rate=state.pool_rate * 15, noise_rate=state.noise_rate * 15)
    for _ in range(60):
        state = contaminated.update(settings, state, core.window, omega, residual, nothing)
    return settings, core.window, omega, residual, nothing, state, outlying


def test_a_quench_finds_many_outliers_where_updates_do_not():
    settings, window, omega, residual, nothing, stuck, outlying = many_outliers()
    assert (np.asarray(stuck.probability)[outlying] > 0.5).mean() < 0.1
    found = quenched(settings, stuck, window, omega, residual, nothing)
    for _ in range(10):
        found = contaminated.update(settings, found, window, omega, residual, nothing)
    flagged = np.asarray(found.probability) > 0.5
    assert flagged[outlying].mean() > 0.95
    assert flagged[~outlying].mean() < 0.02
    np.testing.assert_allclose(contaminated.typical_noise(found), 1.0, rtol=0.3)


def test_no_quench_where_nothing_can_be_an_outlier():
    settings, window, omega, residual, nothing, stuck, _ = many_outliers(robust=False)
    assert float(stuck.probability.max()) < 1e-9
    cold = quenched(settings, stuck, window, omega, residual, nothing)
    np.testing.assert_array_equal(cold.noise_rate, stuck.noise_rate)
    np.testing.assert_array_equal(cold.probability, stuck.probability)


def test_the_first_scale_of_a_slice_is_by_its_median():
    _, core = dense.random_core((40, 50), 1, 1, "default", seed=4)
    rng = np.random.default_rng(4)
    state = core.outliers
    noise = np.sqrt(np.asarray(mixture.noise_now(state)))
    mask = rng.random((1, 40, 50)) < 0.8
    square = (noise * rng.normal(size=mask.shape)) ** 2
    for scale in (0.25, 1.0, 9.0):
        np.testing.assert_allclose(mixture.first_scale(state, mask, scale * square), [scale], rtol=0.15)
    few = np.where(rng.random(mask.shape) < 0.1, 1e6, square)
    np.testing.assert_allclose(mixture.first_scale(state, mask, few), [1.0], rtol=0.4)
    hidden = np.where(mask, square, 1e6)
    np.testing.assert_array_equal(mixture.first_scale(state, mask, hidden), mixture.first_scale(state, mask, square))


def test_the_first_scale_has_limits_and_needs_no_data():
    _, core = dense.random_core((40, 50), 1, 1, "default", seed=4)
    state, mask = core.outliers, np.ones((1, 40, 50), bool)
    assert mixture.first_scale(state, ~mask, np.ones(mask.shape)) == 1
    assert mixture.first_scale(state, mask, np.zeros(mask.shape)) == mixture.SMALLEST_SCALE
    assert mixture.first_scale(state, mask, np.full(mask.shape, 1e9)) == state.ratio


@CASES
def test_the_usual_noise_does_not_depend_on_how_noise_is_shared_between_slices_and_entries(shape, size, length):
    _, core, _, omega, _ = setting(shape, size, length)
    own, found = core.outliers, float(contaminated.usual_noise(core.outliers, omega))
    moved = replace(own, slice_scale=own.slice_scale * 7, ratio=own.ratio * 7, pool_rate=own.pool_rate / 7)
    np.testing.assert_allclose(contaminated.usual_noise(moved, omega), found, rtol=1e-12)

    def prior(factor):
        phi = np.asarray(own.slice_scale) * factor
        return -omega @ (np.log(phi) + 1 / phi)

    best = float(contaminated.typical_noise(own)) / found
    assert prior(best) > max(prior(best * 1.01), prior(best / 1.01))
    assert contaminated.usual_noise(own, omega * 0) == contaminated.typical_noise(own)


def test_deaths_and_births_are_looked_for_now_and_then_and_where_a_slice_does_not_fit():
    settings, core = dense.random_core((4, 3), 3, 3, "default", seed=5)
    often = []
    for slot in range(3):
        for misfit in (1.0, 9.0):
            window = replace(core.window, newest=jnp.asarray(slot))
            outliers = replace(core.outliers, slice_scale=jnp.full(3, 0.1).at[slot].set(0.1 * misfit))
            often.append(bool(moves_likely(settings, outliers, window)))
    assert often == [True, True, False, True, False, True]


@CASES
def test_large_windows_are_added_up_slice_by_slice(shape, size, length, monkeypatch):
    _, core, square, omega, _ = setting(shape, size, length)
    expected = contaminated.noise_statistics(core.outliers, core.window, omega, square)
    monkeypatch.setattr(state, "SMALL_WINDOW", 0)
    found = contaminated.noise_statistics(core.outliers, core.window, omega, square)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
