"""GRASTA: its regression against a linear program, its subspace against the truth."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.lab.baselines import grasta

pytestmark = pytest.mark.slow


def test_sparse_regression_is_the_least_absolute_deviation() -> None:
    draw = np.random.default_rng(0)
    basis = np.linalg.qr(draw.standard_normal((30, 3)))[0]
    values = basis @ np.array([1.0, -2.0, 0.5]) + 0.1 * draw.standard_normal(30) + 3.0 * (draw.random(30) < 0.2)
    # A gently growing penalty lets ADMM end at the optimum; the published growth of 1.8 stops near it.
    with jax.enable_x64(True):
        sparse, weights, dual = map(np.array, grasta._sparse_regression(basis, values, 1.01, 2000, 1e-10))
    cost = np.concatenate([np.zeros(3), np.ones(60)])
    equality = np.concatenate([basis, np.eye(30), -np.eye(30)], axis=1)
    best = linprog(cost, A_eq=equality, b_eq=values, bounds=[(None, None)] * 3 + [(0, None)] * 60)
    assert np.abs(values - basis @ weights).sum() <= best.fun * 1.001
    np.testing.assert_allclose(basis @ weights + sparse, values, atol=1e-8)
    assert np.abs(dual).max() <= 1 + 1e-9  # the dual of an L1 norm
    np.testing.assert_allclose(basis.T @ dual, 0.0, atol=1e-2)


def corrupted(truth: np.ndarray, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    clean = truth @ draw.standard_normal(truth.shape[1]) + 1e-5 * draw.standard_normal(len(truth))
    wrong = draw.random(len(truth)) < 0.1
    return clean + 10 * clean.std() * wrong * draw.standard_normal(len(truth)), draw.random(len(truth)) < 0.5, wrong


def test_recovers_a_subspace_from_half_the_entries_a_tenth_of_them_wrong() -> None:
    draw = np.random.default_rng(0)
    truth = np.linalg.qr(draw.standard_normal((300, 3)))[0]
    state = grasta.init(grasta.Config(rank=3, min_iterations=20), (20, 15))
    for _ in range(700):
        values, mask, _ = corrupted(truth, draw)
        state, _ = grasta.step(state, values.reshape(20, 15), mask.reshape(20, 15))
    lost = np.linalg.norm(truth - state.basis @ (state.basis.T @ truth))
    assert lost < 2e-3
    np.testing.assert_allclose(state.basis.T @ state.basis, np.eye(3), atol=1e-10)
    assert state.level > 4  # the multi-level rule noticed that it had arrived
    values, mask, wrong = corrupted(truth, draw)
    state, result = grasta.step(state, values.reshape(20, 15), mask.reshape(20, 15))
    assert result.outlier_score is not None
    score = result.outlier_score.ravel()[mask]
    large = np.abs(values[mask]) > 0  # every true outlier that is not tiny ranks above every clean entry
    clean, outlying = score[~wrong[mask]], score[wrong[mask] & large]
    assert np.median(outlying) > 50 * clean.max()


def test_training_on_the_first_slices_is_worth_many_steps() -> None:
    draw = np.random.default_rng(3)
    truth = np.linalg.qr(draw.standard_normal((30, 2)))[0]
    slices = [truth @ (3 * draw.standard_normal(2)) for _ in range(12)]
    lost = {}
    for passes in (0, 40):
        config = grasta.Config(rank=2, training_slices=min(passes, 10), training_passes=max(passes, 1))
        state = grasta.init(config, (30,))
        for values in slices:
            state, _ = grasta.step(state, values)
        np.testing.assert_allclose(state.basis.T @ state.basis, np.eye(2), atol=1e-10)
        lost[passes] = np.linalg.norm(truth - state.basis @ (state.basis.T @ truth))
    assert lost[40] < 0.2 * lost[0]


def test_a_constant_step_is_constant() -> None:
    draw = np.random.default_rng(2)
    state = grasta.init(grasta.Config(rank=2, constant_step=0.05), (30,))
    for _ in range(3):
        before = state.basis
        state, _ = grasta.step(state, draw.standard_normal(30))
        # One direction of the subspace turns by the angle, the others stay.
        cosines = np.linalg.svd(before.T @ state.basis, compute_uv=False)
        np.testing.assert_allclose(cosines, [1.0, np.cos(0.05)], rtol=1e-9)


def test_too_few_observations_leave_the_subspace_alone() -> None:
    state = grasta.init(grasta.Config(rank=2), (30,))
    mask = np.arange(30) < 1
    new, result = grasta.step(state, np.ones(30), mask)
    np.testing.assert_array_equal(new.basis, state.basis)
    np.testing.assert_allclose(result.low_rank[mask], 1.0, atol=1e-6)


def test_rank_beyond_the_slice_is_refused() -> None:
    with pytest.raises(ValueError, match="rank must be at most the 4 entries"):
        grasta.init(grasta.Config(rank=5), (2, 2))
