"""Entries that the CP models do not learn from: each in its turn, nowhere in clumps."""

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker.holding_out import RAREST_HELD, held_out
from undertow.tracker.predictors.cp import LARGE_SLICE


@pytest.mark.slow
@pytest.mark.parametrize("entries", [2000, 76_032])
def test_some_entries_are_held_out_each_in_its_turn(entries):
    values, mask = jnp.asarray(np.random.default_rng(0).normal(size=entries)), jnp.arange(entries) % 5 > 0
    slices = jnp.arange(1, 1 + 4 * RAREST_HELD)
    held = np.array([held_out(values, values, mask, number) for number in slices])
    assert not held_out(values, values, mask, jnp.int32(0)).any()
    np.testing.assert_allclose(held.mean(axis=1), 0.8 / RAREST_HELD, rtol=0.1)
    assert not held[:, ~np.asarray(mask)].any()
    often = held[:, np.asarray(mask)].sum(axis=0)
    assert often.min() >= 1
    assert often.max() <= 10
    if entries > LARGE_SLICE:  # whole rows or columns of pictures are never held out
        assert held[0].reshape(144, -1).mean(axis=1).max() < 4 / RAREST_HELD
