"""OLRTR against a plain version with loops, and on what it is made for: fibres of outliers."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import olrtr

RIDGE, SPARSITY, RANK = 0.01, 3.0, 2


def unfold(tensor: np.ndarray, mode: int) -> np.ndarray:
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def fold(matrix: np.ndarray, mode: int, shape: tuple[int, ...]) -> np.ndarray:
    others = [size for k, size in enumerate(shape) if k != mode]
    return np.moveaxis(matrix.reshape(shape[mode], *others), 0, mode)


class Plain:
    """The cycles and the pass over the columns as written in the module, in loops."""

    def __init__(self, dictionaries: tuple[np.ndarray, ...]) -> None:
        self.dictionaries = [one.copy() for one in dictionaries]
        self.squares = [np.zeros((RANK, RANK)) for _ in dictionaries]
        self.products = [np.zeros(one.shape) for one in dictionaries]

    def step(self, values: np.ndarray, mask: np.ndarray, tolerance: float, cycles: int) -> np.ndarray:
        shape, modes = values.shape, range(values.ndim)
        data = np.where(mask, values, 0.0)
        limit = SPARSITY / np.sqrt(np.log(shape[0] ** 2)) / len(modes)
        filled, sparse, low_rank = data.copy(), np.zeros(shape), np.zeros(shape)
        rows = [np.zeros((data.size // size, RANK)) for size in shape]
        for _ in range(cycles):
            before = [sparse, *rows]
            residual = filled - low_rank
            sparse = np.zeros(shape)
            fibres = unfold(residual, 1) if len(modes) > 1 else residual[None]
            kept = np.stack(
                [max(0.0, 1 - limit / max(np.linalg.norm(fibre), 1e-300)) * fibre for fibre in fibres.T], axis=1
            )
            sparse = fold(kept, 1, shape) if len(modes) > 1 else kept[0]
            rows = [
                np.linalg.solve(one.T @ one + RIDGE * np.eye(RANK), one.T @ unfold(filled - sparse, mode)).T
                for mode, one in enumerate(self.dictionaries)
            ]
            parts = [fold(one @ rows[mode].T, mode, shape) for mode, one in enumerate(self.dictionaries)]
            low_rank = sum(parts) / len(modes)
            filled = np.where(mask, data, low_rank + sparse)
            change = max(np.linalg.norm(new - old) for new, old in zip([sparse, *rows], before, strict=True))
            if change <= tolerance * np.linalg.norm(data):
                break
        for mode in modes:
            self.squares[mode] += rows[mode].T @ rows[mode]
            self.products[mode] += unfold(filled - sparse, mode) @ rows[mode]
            square = self.squares[mode] + RIDGE * np.eye(RANK)
            one = self.dictionaries[mode]
            for j in range(RANK):
                one[:, j] += (self.products[mode][:, j] - one @ square[:, j]) / square[j, j]
        return low_rank


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5), (7,)])
def test_is_the_plain_version(shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    values = 1 + draw.random((6, *shape))
    values[3, 1] += 20
    mask = draw.random(values.shape) < 0.7
    state = olrtr.init(olrtr.Config(rank=RANK, iterations=30), shape)
    plain = Plain(state.dictionaries)
    for slice_values, seen in zip(values, mask, strict=True):
        state, result = olrtr.step(state, slice_values, seen)
        expected = plain.step(slice_values, seen, 1e-3, 30)
        np.testing.assert_allclose(result.low_rank, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_recovers_slices_with_broken_fibres() -> None:
    draw = np.random.default_rng(1)
    left, right = draw.standard_normal((20, 3)), draw.standard_normal((12, 3))
    truth = np.stack([left @ (draw.standard_normal((3, 3)) + 1) @ right.T for _ in range(80)])
    truth /= np.abs(truth).mean()
    broken = draw.random((80, 20, 1)) < 0.05  # a fibre along the second mode, as the method expects them
    values = truth + 10 * broken * draw.random(truth.shape)
    state = olrtr.init(olrtr.Config(rank=3), (20, 12))
    errors, found = [], []
    for slice_values, slice_truth, seen, hit in zip(
        values, truth, draw.random(truth.shape) < 0.9, broken[..., 0], strict=True
    ):
        state, result = olrtr.step(state, slice_values, seen)
        sound = ~hit
        errors.append(np.linalg.norm((result.low_rank - slice_truth)[sound]) / np.linalg.norm(slice_truth[sound]))
        assert result.outliers is not None
        size = np.linalg.norm(result.outliers, axis=1)
        found.append((size[hit].min() if hit.any() else np.nan, size[sound].max()))
    assert np.mean(errors[40:]) < 0.2
    hits, sounds = np.array(found[40:]).T
    assert np.nanmedian(hits) > 5 * np.median(sounds)
