"""What a CPU does a few slices at a time, where windows are large, is the same as for small ones."""

import dense
import jax
import numpy as np
import pytest

from undertow.model.factors import predict, rows

pytestmark = [pytest.mark.usefixtures("double"), pytest.mark.slow]
SHAPES = [(4, 5), (3, 4, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_variances_and_updates(monkeypatch, shape):
    _, core = dense.random_core(shape, 3, 8, "default", seed=1)
    weights, values = core.window.mask * 1.5, core.window.values
    slices = np.ones(8)

    def made():
        return (
            jax.jit(lambda factors: predict.variance(factors))(core.factors),
            jax.jit(lambda factors: rows.sweep(factors, weights, values, slices))(core.factors),
        )

    expected = made()
    for module in (rows, predict):
        monkeypatch.setattr(module, "SMALL_WINDOW", 0)
    for name in ("SMALL_PARTIAL", "SMALL_SLICE"):
        monkeypatch.setattr(rows, name, 0)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12), made(), expected)
