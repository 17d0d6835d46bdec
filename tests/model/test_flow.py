"""Small operations of compiled programs against those of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.flow import each, inverse_of, where
from undertow.model.types import put, taken, turned


@pytest.mark.parametrize("condition", [True, np.array([True, False, True]), np.array([[True], [False]])])
@pytest.mark.parametrize("no", [0, np.arange(3, dtype=np.float32), np.float32(7)])
def test_where_is_that_of_numpy(condition, no):
    yes = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = where(condition, yes, no)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.where(condition, yes, no))


def test_where_is_no_function_of_its_own():
    program = jax.jit(lambda x: where(x > 0, x, 0) + where(x[:2] > 0, x[:2], 0).sum()).lower(jnp.ones(3)).as_text()
    assert program.count("func.func") == 1


def test_slots_of_a_ring_are_read_written_and_counted_around():
    ring = np.arange(12, dtype=np.float32).reshape(4, 3)
    for slot in (0, 3):
        np.testing.assert_array_equal(taken(jnp.asarray(ring), jnp.int32(slot)), ring[slot])
        expected = ring.copy()
        expected[slot] = 7
        np.testing.assert_array_equal(put(jnp.asarray(ring), jnp.int32(slot), jnp.full(3, 7)), expected)
    around = jnp.arange(-4, 8, dtype=jnp.int32)
    np.testing.assert_array_equal(turned(around, 4), np.mod(np.arange(-4, 8), 4))


def test_the_inverse_of_nothing_is_nothing():
    np.testing.assert_allclose(inverse_of(jnp.asarray([0.0, 0.5, 4.0])), [0, 2, 0.25])


def test_each_is_the_work_of_every_item():
    doubled, squared = each(lambda x: (2 * x, x**2), jnp.arange(3.0))
    np.testing.assert_array_equal(doubled, [0, 2, 4])
    np.testing.assert_array_equal(squared, [0, 1, 4])
