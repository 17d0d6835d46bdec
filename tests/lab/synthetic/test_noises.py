import numpy as np
import pytest

from undertow.lab.synthetic.noises import heavy_tailed, lognormal_traffic, proportional


def test_heavy_tails_and_planted_outliers():
    clean, planted = (heavy_tailed(slices=100, planted=fraction, seed=1) for fraction in (0.0, 0.02))
    rest = (clean.complete - clean.low_rank) / 0.1
    assert np.mean(np.abs(rest) > 3.182) == pytest.approx(0.05, abs=0.005)  # the 95 % interval of Student-t, 3 degrees
    assert not clean.outlier_mask.any()
    added = (planted.complete - clean.complete)[planted.outlier_mask]
    assert planted.outlier_mask.mean() == pytest.approx(0.02)
    assert np.abs(added).min() >= 1
    assert np.abs(added).max() <= 3
    np.testing.assert_array_equal(planted.complete[~planted.outlier_mask], clean.complete[~planted.outlier_mask])


@pytest.mark.parametrize("daily", [False, True])
def test_noise_is_in_proportion_to_a_matrix_of_rank_one(daily):
    stream = proportional(0.12, slices=48, daily=daily, seed=2)
    assert np.log(stream.complete / stream.low_rank).std() == pytest.approx(0.12, rel=0.03)
    assert np.linalg.matrix_rank(stream.low_rank[5]) == 1
    assert stream.low_rank[6].sum() / stream.low_rank[18].sum() == pytest.approx(3 if daily else 1)
    assert stream.mask.all()


def test_anomalies_multiply_traffic():
    stream = lognormal_traffic(6, slices=100, anomalies=0.01, seed=3)
    assert stream.outlier_mask.sum() == 36
    assert (stream.complete > 0).all()
    factor = np.log(stream.complete / stream.low_rank)
    assert factor[~stream.outlier_mask].std() == pytest.approx(0.12, rel=0.05)
    assert np.abs(factor[stream.outlier_mask]).min() > 0.8 - 5 * 0.12
