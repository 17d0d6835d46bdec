"""Online-SGD against its equations in plain matrix algebra."""

from __future__ import annotations

import numpy as np

from undertow.lab.baselines import online_sgd
from undertow.lab.synthetic.streams import drifting

LAMBDA, STEP = 0.001, 0.1


def plain_row(values: np.ndarray, mask: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    design = np.einsum("ir,jr->ijr", left, right)[mask]
    return np.linalg.solve(design.T @ design + LAMBDA * np.eye(left.shape[1]), design.T @ values[mask])


def test_equals_the_plain_version() -> None:
    stream = drifting((6, 5), 2, slices=8, observed=0.8, seed=4)
    state = online_sgd.init(online_sgd.Config(rank=2, seed=3), (6, 5))
    left, right = state.factors
    for t in range(8):
        values, mask = np.nan_to_num(stream.values[t]), stream.mask[t]
        row = plain_row(values, mask, left, right)
        residual = mask * (values - left @ np.diag(row) @ right.T)
        rate = STEP / (1 + LAMBDA * STEP * (t + 1))
        left, right = (
            (1 - LAMBDA * rate) * left + rate * residual @ right @ np.diag(row),
            (1 - LAMBDA * rate) * right + rate * residual.T @ left @ np.diag(row),
        )
        row = plain_row(values, mask, left, right)
        state, result = online_sgd.step(state, values, mask)
        np.testing.assert_allclose(result.low_rank, left @ np.diag(row) @ right.T, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(state.row, row, rtol=1e-8)


def test_divergence_is_a_status_and_leaves_the_state() -> None:
    draw = np.random.default_rng(0)
    state = online_sgd.init(online_sgd.Config(rank=2, step=1e200), (6, 5))
    for _ in range(4):
        before = state
        state, result = online_sgd.step(state, 1e150 * draw.standard_normal((6, 5)))
        if result.status == "diverged":
            break
    assert result.status == "diverged"
    assert state is before
    np.testing.assert_array_equal(result.low_rank, 0.0)
