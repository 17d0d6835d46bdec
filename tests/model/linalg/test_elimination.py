"""Both ways of elimination against NumPy; the kernel runs interpreted where there is no GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.linalg import elimination
from undertow.model.linalg.elimination import in_registers, one_by_one
from undertow.model.linalg.symmetric import inverse

ON_CPU = jax.default_backend() == "cpu"
MORE = [pytest.param(*case, marks=pytest.mark.full) for case in ((1, 15), (3, 2), (4, 8), (2, 17))]


def kernel(matrices):
    return in_registers(matrices, interpret=ON_CPU)


def definite(count, size, seed=0):
    roots = np.random.default_rng(seed).normal(size=(count, size, 3 * size))
    return roots @ roots.swapaxes(1, 2) / (3 * size)


@pytest.mark.slow
@pytest.mark.parametrize("way", [one_by_one, kernel])
@pytest.mark.parametrize(("count", "size"), [(1, 1), (5, 3), (7, 16), *MORE])
def test_inverses_and_pivots(way, count, size):
    matrices = definite(count, size)
    with jax.enable_x64(True):
        inverses, pivots = way(jnp.asarray(matrices))
        assert inverses.dtype == jnp.float64
        np.testing.assert_allclose(inverses, np.linalg.inv(matrices), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pivots.prod(axis=1), np.linalg.det(matrices), rtol=1e-9)


@pytest.mark.slow
def test_both_ways_agree_in_single_precision():
    matrices = jnp.asarray(definite(6, 15), jnp.float32)
    for ours, theirs in zip(kernel(matrices), one_by_one(matrices), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_fleet_of_matrices():
    fleet = jnp.asarray(definite(6, 4).reshape(2, 3, 4, 4), jnp.float32)
    inverses, pivots = jax.vmap(kernel)(fleet)
    np.testing.assert_allclose(inverses, np.linalg.inv(fleet), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pivots.prod(axis=2), np.linalg.det(fleet), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("way", [one_by_one, kernel])
def test_a_singular_matrix_spoils_no_other(way):
    matrices = jnp.asarray(definite(4, 3), jnp.float32).at[1].set(0)
    inverses, _ = way(matrices)
    assert not np.isfinite(inverses[1]).all()
    np.testing.assert_allclose(inverses[2], np.linalg.inv(matrices[2]), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_many_matrices_are_eliminated_in_blocks(monkeypatch):
    monkeypatch.setattr(elimination, "ELIMINATION_NUMBERS", 4 * 25)
    matrices = definite(10, 5)  # two blocks of four, and one that is filled up
    with jax.enable_x64(True):
        inverses, pivots = one_by_one(jnp.asarray(matrices))
        assert inverses.shape == (10, 5, 5)
        np.testing.assert_allclose(inverses, np.linalg.inv(matrices), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pivots.prod(axis=1), np.linalg.det(matrices), rtol=1e-9)


def test_a_model_on_the_cpu_of_a_machine_with_a_gpu(monkeypatch):
    """The kernel is for the GPU; what is lowered for the CPU must not meet it."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(elimination, "kernels_work", lambda: True)
    matrices = jnp.asarray(definite(3, 5), jnp.float32)
    with jax.default_device(jax.devices("cpu")[0]):
        inverses, solved = jax.jit(inverse)(matrices)
    assert solved.all()
    np.testing.assert_allclose(inverses, np.linalg.inv(matrices), rtol=1e-4, atol=1e-4)


def test_where_kernels_do_not_work_there_is_another_way(monkeypatch):
    elimination.kernels_work.cache_clear()
    monkeypatch.setattr(elimination, "in_registers", lambda matrices: 1 / 0)
    assert not elimination.kernels_work()
    elimination.kernels_work.cache_clear()
