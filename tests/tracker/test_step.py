"""The variance around the answer, against loops over predictors."""

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker import scales, step
from undertow.tracker.predictors.cp import LARGE_SLICE


def test_who_errs_less_once_the_slice_is_known_claims_less():
    rng = np.random.default_rng(4)
    means, variances, noises = rng.normal(size=(3, 4)), rng.uniform(1, 2, (3, 4)), rng.uniform(1, 2, (3, 4))
    weights, gains = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.5, 0.8])
    said = step._Told(*map(jnp.asarray, (means, variances, noises, noises)), jnp.zeros(3, bool))
    variance, noise = step._answered(jnp.asarray(weights), said, jnp.asarray(gains), jnp.int32(scales.LINEAR))
    for entry in range(4):
        mean = sum(weights[k] * means[k, entry] for k in range(3))
        own = sum(weights[k] * noises[k, entry] * gains[k] ** 2 for k in range(3))
        apart = sum(
            weights[k] * (variances[k, entry] * gains[k] ** 2 + (means[k, entry] - mean) ** 2) for k in range(3)
        )
        np.testing.assert_allclose((variance[entry], noise[entry]), (own + apart, own), rtol=1e-5)


@pytest.mark.parametrize("entries", [2000, 76_032])
def test_some_entries_are_held_out_each_in_its_turn(entries):
    values, mask = jnp.asarray(np.random.default_rng(0).normal(size=entries)), jnp.arange(entries) % 5 > 0
    slices = jnp.arange(1, 1 + 4 * step.RAREST_HELD)
    held = np.array([step._held_out(values, values, mask, number) for number in slices])
    assert not step._held_out(values, values, mask, jnp.int32(0)).any()
    np.testing.assert_allclose(held.mean(axis=1), 0.8 / step.RAREST_HELD, rtol=0.1)
    assert not held[:, ~np.asarray(mask)].any()
    often = held[:, np.asarray(mask)].sum(axis=0)
    assert often.min() >= 1
    assert often.max() <= 10
    if entries > LARGE_SLICE:  # whole rows or columns of pictures are never held out
        assert held[0].reshape(144, -1).mean(axis=1).max() < 4 / step.RAREST_HELD
