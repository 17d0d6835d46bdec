"""The variance around the answer, against loops over predictors."""

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker import scales
from undertow.tracker.predicting import Said, answered


@pytest.mark.slow
def test_who_errs_less_once_the_slice_is_known_claims_less():
    rng = np.random.default_rng(4)
    means, variances, noises = rng.normal(size=(3, 4)), rng.uniform(1, 2, (3, 4)), rng.uniform(1, 2, (3, 4))
    weights, gains = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.5, 0.8])
    said = Said(*map(jnp.asarray, (means, variances, noises, noises)), jnp.zeros(3, bool))
    variance, noise = answered(jnp.asarray(weights), said, jnp.asarray(gains), jnp.int32(scales.LINEAR))
    for entry in range(4):
        mean = sum(weights[k] * means[k, entry] for k in range(3))
        own = sum(weights[k] * noises[k, entry] * gains[k] ** 2 for k in range(3))
        apart = sum(
            weights[k] * (variances[k, entry] * gains[k] ** 2 + (means[k, entry] - mean) ** 2) for k in range(3)
        )
        np.testing.assert_allclose((variance[entry], noise[entry]), (own + apart, own), rtol=1e-5)
