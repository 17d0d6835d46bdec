"""OLSTEC against the published recursion, row by row, and against the regression it stands for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from undertow.lab.baselines import olstec
from undertow.lab.synthetic.streams import drifting

RHO, MU, RIDGE = 0.7, 0.1, 0.7


def product_of_others(factors: list[np.ndarray], index: tuple[int, ...], skip: int | None) -> np.ndarray:
    rows = [factor[i] for mode, (factor, i) in enumerate(zip(factors, index, strict=True)) if mode != skip]
    return np.prod(rows, axis=0) if rows else np.ones(factors[0].shape[1])


def plain_row(values: np.ndarray, mask: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    rank = factors[0].shape[1]
    gram, target = RIDGE * np.eye(rank), np.zeros(rank)
    for index in map(tuple, np.argwhere(mask)):
        design = product_of_others(factors, index, None)
        gram += np.outer(design, design)
        target += design * values[index]
    return np.linalg.solve(gram, target)


def plain_stream(
    values: np.ndarray, masks: np.ndarray, start: list[np.ndarray], window: int | None
) -> list[np.ndarray]:
    """Loops over rows. Exponential window: the published correction step. Truncated: the regression itself."""
    factors, shape, rank = [factor.copy() for factor in start], values.shape[1:], start[0].shape[1]
    inverse = [[100.0 * np.eye(rank) for _ in range(size)] for size in shape]
    history: list[list[list[tuple[np.ndarray, np.ndarray]]]] = [[[] for _ in range(size)] for size in shape]
    slices = []
    for t, (slice_values, mask) in enumerate(zip(values, masks, strict=True)):
        row = plain_row(slice_values, mask, factors)
        for mode, size in enumerate(shape):
            new = factors[mode].copy()
            for i in range(size):
                gram, projection, misfit = np.zeros((rank, rank)), np.zeros(rank), np.zeros(rank)
                for index in itertools.product(*map(range, shape)):
                    if index[mode] == i and mask[index]:
                        alpha = row * product_of_others(factors, index, mode)
                        gram += np.outer(alpha, alpha)
                        projection += alpha * slice_values[index]
                        misfit += alpha * (slice_values[index] - alpha @ factors[mode][i])
                if window is None:
                    old = inverse[mode][i]
                    inverse[mode][i] = np.linalg.inv(RHO * np.linalg.inv(old) + gram + MU * (1 - RHO) * np.eye(rank))
                    new[i] = factors[mode][i] + inverse[mode][i] @ (misfit - MU * (1 - RHO) * factors[mode][i])
                else:
                    history[mode][i].append((gram, projection))
                    decay = RHO ** (t + 1)
                    matrix = (0.01 * decay + MU * (1 - decay)) * np.eye(rank)
                    vector = 0.01 * decay * start[mode][i]
                    for age, (kept_gram, kept_projection) in enumerate(reversed(history[mode][i][-window:])):
                        matrix += RHO**age * kept_gram
                        vector += RHO**age * kept_projection
                    new[i] = np.linalg.solve(matrix, vector)
            factors[mode] = new
        row = plain_row(slice_values, mask, factors)
        slices.append(
            np.array([row @ product_of_others(factors, index, None) for index in itertools.product(*map(range, shape))])
        )
    return slices


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "window"), [((6, 5), None), ((6, 5), 3), ((4, 3, 5), None), ((7,), 3)])
def test_equals_the_plain_version(shape: tuple[int, ...], window: int | None) -> None:
    stream = drifting(shape, 2, slices=6, observed=0.7, seed=1)
    state = olstec.init(olstec.Config(rank=2, window=window, seed=5), shape)
    expected = plain_stream(np.nan_to_num(stream.values), stream.mask, list(state.factors), window)
    for t in range(6):
        state, result = olstec.step(state, stream.values[t], stream.mask[t])
        np.testing.assert_allclose(result.low_rank.ravel(), expected[t], rtol=1e-7, atol=1e-9)


def test_a_truncated_window_forgets_what_left_it() -> None:
    """Apart from the start, whose weight is 0.7^30, the statistics hold the last three slices only."""
    stream = drifting((6, 5), 2, slices=40, seed=2)
    runs = []
    for scale in (1.0, 5.0):
        state = olstec.init(olstec.Config(rank=2, window=3), (6, 5))
        values = stream.values.copy()
        values[0] *= scale
        for t in range(40):
            state, _ = olstec.step(state, values[t])
        leaving = [gram.sum(axis=0) for gram in state.grams]
        assert all(np.isfinite(part).all() for part in leaving)
        ages = 0.7 ** np.arange(3)[::-1]
        for mode in (0, 1):
            kept = np.tensordot(ages, state.grams[mode], 1) + 0.1 * np.eye(2)
            np.testing.assert_allclose(state.information[mode], kept, atol=1e-4)
        runs.append(state)
    assert not np.array_equal(runs[0].factors[0], runs[1].factors[0])


def test_truncated_and_exponential_agree_while_nothing_left() -> None:
    stream = drifting((6, 5), 2, slices=3, seed=3)
    one = olstec.init(olstec.Config(rank=2), (6, 5))
    other = olstec.init(olstec.Config(rank=2, window=3), (6, 5))
    for values in stream.values:
        one, first = olstec.step(one, values)
        other, second = olstec.step(other, values)
        np.testing.assert_allclose(first.low_rank, second.low_rank, rtol=1e-9)
