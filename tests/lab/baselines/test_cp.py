"""The contractions against loops over entries, and CP-ALS against a tensor whose rank is known."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from undertow.lab.baselines import cp
from undertow.lab.baselines.cp_als import cp_als

SHAPES = [(4,), (4, 3), (2, 4, 3)]


def draw_factors(shape: tuple[int, ...], rank: int) -> list[np.ndarray]:
    draw = np.random.default_rng(len(shape))
    return [draw.standard_normal((size, rank)) for size in shape]


@pytest.mark.parametrize("shape", SHAPES)
def test_contract_is_the_sum_over_the_other_modes(shape: tuple[int, ...]) -> None:
    factors, tensor = draw_factors(shape, 2), np.random.default_rng(9).standard_normal(shape)
    for mode in range(len(shape)):
        expected = np.zeros((shape[mode], 2))
        for index in itertools.product(*map(range, shape)):
            others = [factors[k][i] for k, i in enumerate(index) if k != mode]
            expected[index[mode]] += tensor[index] * np.prod(others, axis=0) if others else tensor[index]
        with jax.enable_x64(True):
            found = np.array(cp.contract(tensor, factors, mode))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_compose_is_the_sum_of_outer_products(shape: tuple[int, ...]) -> None:
    factors, row = draw_factors(shape, 2), np.array([0.5, -2.0])
    expected = np.zeros(shape)
    for index in itertools.product(*map(range, shape)):
        expected[index] = np.sum(row * np.prod([factors[k][i] for k, i in enumerate(index)], axis=0))
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.array(cp.compose(factors, row)), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_temporal_row_is_ridge_regression_on_the_observed_entries(shape: tuple[int, ...]) -> None:
    factors, draw = draw_factors(shape, 2), np.random.default_rng(3)
    mask, values = draw.random(shape) < 0.8, draw.standard_normal(shape)
    with jax.enable_x64(True):
        design = np.array(cp.khatri_rao(factors))[mask.ravel()]
        row = np.array(cp.temporal_row(values * mask, mask.astype(float), factors, np.array(0.3)))
    stacked = np.concatenate([design, np.sqrt(0.3) * np.eye(2)])
    expected = np.linalg.lstsq(stacked, np.concatenate([values[mask], np.zeros(2)]), rcond=None)[0]
    np.testing.assert_allclose(row, expected, rtol=1e-10)


def test_solve_positive_solves_and_marks_what_it_cannot() -> None:
    draw = np.random.default_rng(4)
    roots = draw.standard_normal((5, 3, 3))
    matrices, targets = roots @ roots.transpose(0, 2, 1) + np.eye(3), draw.standard_normal((5, 3))
    matrices[2] = -np.eye(3)
    with jax.enable_x64(True):
        found = np.array(cp.solve_positive(matrices, targets))
    assert np.isnan(found[2]).all()
    good = [0, 1, 3, 4]
    np.testing.assert_allclose(np.einsum("irs,is->ir", matrices[good], found[good]), targets[good], rtol=1e-9)


def test_cp_als_recovers_a_tensor_of_its_rank() -> None:
    factors = draw_factors((6, 5, 4), 2)
    tensor = np.einsum("ar,br,cr->abc", *factors)
    found = cp_als(tensor, rank=2, iterations=500, tolerance=1e-12, seed=1)
    np.testing.assert_allclose(np.einsum("ar,br,cr->abc", *found), tensor, atol=1e-4 * np.abs(tensor).max())


def test_cp_als_of_zeros_is_zero() -> None:
    found = cp_als(np.zeros((3, 4, 2)), rank=2, iterations=5, tolerance=1e-8, seed=0)
    np.testing.assert_array_equal(found[-1], 0.0)
