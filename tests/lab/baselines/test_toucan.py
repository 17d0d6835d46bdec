"""TOUCAN against the t-product written with block circulant matrices, and on a submodule that it should find."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import METHODS, toucan


def circulant(tensor: np.ndarray) -> np.ndarray:
    """The block circulant matrix of (I, R, J): the t-product as a matrix product."""
    length = tensor.shape[2]
    return np.block([[tensor[:, :, (i - j) % length] for j in range(length)] for i in range(length)])


def real_basis(state: toucan.State) -> np.ndarray:
    """U, (I, R, J)."""
    found = np.fft.ifft(np.moveaxis(state.basis, 0, -1), axis=2)
    np.testing.assert_allclose(found.imag, 0, atol=1e-10)
    return found.real


def test_weights_are_the_least_squares_of_the_t_product() -> None:
    draw = np.random.default_rng(0)
    values, mask = draw.standard_normal((6, 5)), draw.random((6, 5)) < 0.8
    state = toucan.init(toucan.Config(rank=2, tolerance=1e-12), (6, 5))
    design = circulant(real_basis(state))
    np.testing.assert_allclose(design.T @ design, np.eye(10), atol=1e-10)
    seen = mask.T.ravel()  # faces one after the other
    weights, *_ = np.linalg.lstsq(design[seen], values.T.ravel()[seen], rcond=None)
    found = np.fft.ifft(toucan._weights(state, np.where(mask, values, 0.0), mask), axis=0)
    np.testing.assert_allclose(found.real.ravel(), weights, atol=1e-8)


@pytest.mark.parametrize("step", [None, 0.1])
def test_basis_turns_along_the_geodesic_and_stays_orthonormal(step: float | None) -> None:
    draw = np.random.default_rng(1)
    state = toucan.init(toucan.Config(rank=2, step=step, tolerance=1e-12), (6, 4))
    for values in draw.standard_normal((5, 6, 4)):
        before, mask = state, draw.random((6, 4)) < 0.9
        state, result = toucan.step(state, values, mask)
        seen = np.where(mask, values, 0.0)
        weights = toucan._weights(before, seen, mask)
        fitted = np.einsum("fir,fr->fi", before.basis, weights)
        residual = np.fft.fft(np.where(mask, values - np.fft.ifft(fitted, axis=0).real.T, 0.0), axis=1).T
        for face in range(4):
            u, w, r = before.basis[face], weights[face], residual[face]
            r = r - u @ (u.conj().T @ r)
            size = np.linalg.norm(r), np.linalg.norm(w)
            angle = np.arctan(size[0] / size[1]) if step is None else step * size[0] * size[1]
            towards = (np.cos(angle) - 1) * u @ w / np.linalg.norm(u @ w) + np.sin(angle) * r / size[0]
            np.testing.assert_allclose(state.basis[face], u + np.outer(towards, w.conj()) / size[1], atol=1e-6)
        np.testing.assert_allclose(circulant(real_basis(state)).T @ circulant(real_basis(state)), np.eye(8), atol=1e-6)
        assert result.rank == 2


def test_finds_a_submodule_from_incomplete_slices() -> None:
    draw = np.random.default_rng(2)
    truth = draw.standard_normal((10, 1, 6))
    errors = []
    state = toucan.init(toucan.Config(rank=1), (10, 6))
    for _ in range(60):
        slice_values = (circulant(truth) @ draw.standard_normal(6)).reshape(6, 10).T
        state, result = toucan.step(state, slice_values, draw.random((10, 6)) < 0.9)
        errors.append(np.linalg.norm(result.low_rank - slice_values) / np.linalg.norm(slice_values))
    assert np.mean(errors[:3]) > 0.3
    assert np.mean(errors[40:]) < 1e-3


def test_the_rank_is_at_most_the_first_mode() -> None:
    method = METHODS["toucan"]
    _, result = method.step(method.init(method.configure(rank=9), (3, 4)), np.ones((3, 4)))
    assert result.rank == 3
