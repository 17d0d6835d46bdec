"""Special functions of positive numbers against SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special as reference

from undertow.model.noise import special

NUMBERS = np.array([1e-6, 0.02, 0.5, 1.0, 1.46, 7.9, 30.0, 1e3, 1e7])


@pytest.mark.parametrize(("dtype", "digits"), [("float64", 1e-11), ("float32", 3e-6)])
def test_digamma(dtype, digits):
    with jax.enable_x64(dtype == "float64"):
        found = np.asarray(special.digamma(jnp.asarray(NUMBERS, dtype)))
    np.testing.assert_allclose(found, reference.digamma(NUMBERS), rtol=digits, atol=digits)


def test_gamma_ratio_is_accurate_in_single_precision():
    for base in (1e-6, 1.5, 30.0, 1000.0):
        for step in (0.5, 5.0, 200.0):
            exact = reference.gammaln(base + step) - reference.gammaln(base) - step * np.log(base)
            got = special.gamma_ratio(jnp.float32(base), jnp.float32(step))
            np.testing.assert_allclose(got, exact, rtol=2e-5, atol=2e-4)
    assert np.isfinite(special.gamma_ratio(jnp.float32(1e-6), jnp.float32(5e6)))  # a vector of ten million entries


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("prior", [(1.0, 49.0), (0.3, 2.0), (1e-30, 49.0)])
def test_change_of_a_log_beta(prior):
    step = np.array([0.0 if prior[0] < 1e-9 else 17.5, 3000.0])
    found = special.log_beta_change(jnp.asarray(prior), jnp.asarray(prior) + step)
    expected = reference.betaln(prior[0] + step[0], prior[1] + step[1]) - reference.betaln(*prior)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
