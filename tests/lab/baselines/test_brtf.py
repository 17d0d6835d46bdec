"""BRTF against its updates written row by row, and on tensors whose rank, outliers and noise are known."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.special import digamma

from undertow.lab.baselines import brtf
from undertow.lab.baselines.brtf_updates import Posterior, gamma_shape, iterate
from undertow.lab.synthetic.streams import drifting

pytestmark = pytest.mark.slow


def plain_iterations(
    values: np.ndarray, mask: np.ndarray, factors: list[np.ndarray], outliers: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """The updates with loops over rows; no refitted priors, no pruning. Returns x̄, ē, β, γ."""
    rank = factors[0].shape[1]
    covariances = [np.tile(np.eye(rank), (len(factor), 1, 1)) for factor in factors]
    ranking, noise, alpha = np.ones(rank), 1.0, np.ones(values.shape)
    outlier_variance = mask.astype(float)
    low_rank = np.zeros(values.shape)
    for _ in range(count):
        for mode in range(values.ndim):
            for i in range(values.shape[mode]):
                gram, target = np.zeros((rank, rank)), np.zeros(rank)
                for index in map(tuple, np.argwhere(mask)):
                    if index[mode] != i:
                        continue
                    moment, mean = np.ones((rank, rank)), np.ones(rank)
                    for k, j in enumerate(index):
                        if k != mode:
                            moment = moment * (np.outer(factors[k][j], factors[k][j]) + covariances[k][j])
                            mean = mean * factors[k][j]
                    gram += moment
                    target += mean * (values[index] - outliers[index])
                covariances[mode][i] = np.linalg.inv(noise * gram + np.diag(ranking))
                factors[mode][i] = noise * covariances[mode][i] @ target
        low_rank = np.einsum("ar,br,cr->abc", *factors)
        power = sum((f**2).sum(0) + np.einsum("irr->r", v) for f, v in zip(factors, covariances, strict=True))
        ranking = (1e-6 + 0.5 * sum(values.shape)) / (1e-6 + 0.5 * power)
        fit = 0.0
        for index in map(tuple, np.argwhere(mask)):
            second = np.ones((rank, rank))
            for k, j in enumerate(index):
                second = second * (np.outer(factors[k][j], factors[k][j]) + covariances[k][j])
            fit += (values[index] - low_rank[index] - outliers[index]) ** 2 - low_rank[index] ** 2
            fit += second.sum() + outlier_variance[index]
        noise = (1e-6 + 0.5 * mask.sum()) / (1e-6 + 0.5 * fit)
        outlier_variance = mask / (alpha + noise)
        outliers = noise * outlier_variance * (values - low_rank)
        alpha = (1e-6 + 0.5) / (1e-6 + 0.5 * (outliers**2 + outlier_variance))
    return low_rank, outliers, noise, ranking


@pytest.mark.parametrize("count", [1, 3])
def test_updates_equal_the_plain_version(count: int) -> None:
    draw = np.random.default_rng(1)
    factors = [draw.standard_normal((size, 2)) for size in (6, 5, 6)]
    mask = draw.random((6, 5, 6)) < 0.8
    values = mask * (np.einsum("ar,br,cr->abc", *factors) + 0.1 * draw.standard_normal((6, 5, 6)))
    outliers = mask * draw.standard_normal((6, 5, 6))
    start = [draw.standard_normal((size, 2)) for size in (6, 5, 6)]
    with jax.enable_x64(True):
        begin = Posterior.start(tuple(f.copy() for f in start), outliers, mask.astype(float), 1.0)
        settings = np.array([count, 1e-6, 0.0, 0.0])
        found = jax.tree.map(np.array, iterate(begin, values, mask.astype(float), np.ones(6), settings))
    low_rank, sparse, noise, ranking = plain_iterations(values, mask, start, outliers, count)
    np.testing.assert_allclose(found.low_rank, low_rank, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.outliers, sparse, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.noise, noise, rtol=1e-9)
    np.testing.assert_allclose(found.ranking, ranking, rtol=1e-9)


def test_gamma_shape_solves_its_equation() -> None:
    with jax.enable_x64(True):
        for gap in (1e-3, 0.1, 1.0, 5.0, 50.0):
            shape = float(gamma_shape(np.array(gap)))
            np.testing.assert_allclose(np.log(shape) - digamma(shape), gap, rtol=1e-9)


def test_finds_rank_outliers_and_noise_of_a_tensor_that_does_not_drift() -> None:
    stream = drifting((15, 12), 3, slices=20, observed=0.8, drift=0.0, outlier_fraction=0.03, noise_std=0.05, seed=2)
    fitted = brtf.fit(brtf.Config(rank=8), stream.values, stream.mask)
    assert fitted.status == "ok"
    assert fitted.rank == 3
    assert [factor.shape for factor in fitted.factors] == [(15, 3), (12, 3), (20, 3)]
    assert np.linalg.norm(fitted.low_rank - stream.low_rank) < 0.05 * np.linalg.norm(stream.low_rank)
    found = np.abs(fitted.outliers) > 5.0
    np.testing.assert_array_equal(found[stream.mask], stream.outlier_mask[stream.mask])


def test_a_filling_window_is_a_fit_of_the_slices_seen() -> None:
    """Padding of the window must not be felt."""
    stream = drifting((6, 5), 2, slices=6, drift=0.0, outlier_fraction=0.0, seed=3)
    state = brtf.init(brtf.Config(rank=2, window=6, iterations=30), (6, 5))
    for values in stream.values[:4]:
        state, result = brtf.step(state, values)
    fitted = brtf.fit(brtf.Config(rank=2, iterations=30), stream.values[:4])
    assert result.rank == fitted.rank
    np.testing.assert_allclose(result.low_rank, fitted.low_rank[-1], rtol=1e-6, atol=1e-8)
    for values in stream.values[4:]:
        state, result = brtf.step(state, values)
    whole = brtf.fit(brtf.Config(rank=2, iterations=30), stream.values)
    np.testing.assert_allclose(result.low_rank, whole.low_rank[-1], rtol=1e-6, atol=1e-8)


def test_published_stopping_ends_no_later_than_the_repaired_one() -> None:
    stream = drifting((15, 12), 2, slices=20, observed=0.3, seed=4)
    published = brtf.fit(brtf.Config(rank=8), stream.values, stream.mask)
    repaired = brtf.fit(brtf.Config(rank=8, stopping="repaired"), stream.values, stream.mask)
    assert published.iterations < repaired.iterations


def test_empty_and_flat_input_are_answered() -> None:
    nothing = brtf.fit(brtf.Config(), np.full((4, 3, 2), np.nan))
    assert nothing.status == "no data"
    assert nothing.rank == 0
    with pytest.raises(ValueError, match="stacked along the first axis"):
        brtf.fit(brtf.Config(), np.zeros(4))
    with pytest.raises(ValueError, match="stopping must be"):
        brtf.Config(stopping="never")  # type: ignore[arg-type]
