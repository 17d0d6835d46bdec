"""Pooled noise: the ELBO with τ integrated out, and its maximiser."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from undertow.model.noise import pooled

pytestmark = pytest.mark.usefixtures("double")


def integrated(alpha, rate, counts, sums):
    half = counts / 2
    return np.sum(
        gammaln(alpha + half) - gammaln(alpha) + alpha * np.log(rate) - (alpha + half) * np.log(rate + sums / 2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.5, 7.0, 1000.0])
def test_pool_elbo_and_its_best_rate(alpha):
    rng = np.random.default_rng(3)
    counts = rng.uniform(0, 10, 200)
    sums = counts * rng.gamma(2.0, 1.0, 200)
    rate = 3.0
    got = pooled.pool_elbo(jnp.asarray(alpha), jnp.asarray(rate), jnp.asarray(counts), jnp.asarray(sums))
    np.testing.assert_allclose(got, integrated(alpha, rate, counts, sums), rtol=1e-9)
    best = minimize_scalar(lambda u: -integrated(alpha, np.exp(u), counts, sums), bounds=(-5, 12), method="bounded")
    found = jnp.asarray(1.0)
    for _ in range(30):
        found = pooled.pooled_rate(
            jnp.asarray(alpha), found, jnp.asarray(counts), jnp.asarray(sums), jnp.asarray(1e-12 * alpha)
        )
    assert integrated(alpha, float(found), counts, sums) >= -best.fun - 1e-6 * abs(best.fun)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(1.5, 1000), st.floats(1e-3, 1e3))
def test_a_pooled_rate_never_lowers_the_elbo(seed, alpha, start):
    import jax

    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        counts = rng.uniform(0, 20, 30) * (rng.random(30) < 0.7)  # very uneven: this is where the quick step can fail
        sums = counts * rng.gamma(0.5, 2.0, 30) * 10.0 ** rng.integers(-3, 3, 30)
        new = pooled.pooled_rate(
            jnp.asarray(alpha), jnp.asarray(start), jnp.asarray(counts), jnp.asarray(sums), jnp.asarray(1e-9 * alpha)
        )
        before, after = (integrated(alpha, float(rate), counts, sums) for rate in (start, new))
    assert after >= before - 1e-9 * max(1.0, abs(before))


def test_gamma_gap_is_the_divergence():
    import dense

    got = pooled.gamma_gap(jnp.asarray(4.0), jnp.asarray(2.0), 1.5, 0.7)
    np.testing.assert_allclose(got, dense.gamma_gap(4.0, 2.0, 1.5, 0.7), rtol=1e-9)
