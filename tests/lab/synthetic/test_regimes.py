import numpy as np
import pytest

from undertow.lab.synthetic.regimes import KINDS, SHAPE, regimes


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_alone(kind):
    stream = regimes([kind], slices=6, seed=1)
    assert stream.values.shape == (6, *SHAPE)
    truth, noise, outliers = KINDS[kind](6, 1)
    np.testing.assert_allclose(stream.complete, truth + noise + outliers)
    assert stream.outlier_mask.any() == (kind == "spiky")


def test_turns():
    level, factors = (regimes([kind], slices=8, seed=2).low_rank for kind in ("level", "factors"))
    halves = regimes(["level", "factors"], slices=8, seed=2)
    np.testing.assert_array_equal(halves.low_rank, np.concatenate([level[:4], factors[4:]]))
    switching = regimes(["level", "factors"], slices=8, every=2, seed=2)
    np.testing.assert_array_equal(switching.low_rank[4:6], level[4:6])
    np.testing.assert_array_equal(switching.low_rank[6:], factors[6:])


def test_kinds_differ_in_what_they_are_for():
    quiet, spiky = (regimes([kind], slices=6, seed=3) for kind in ("quiet", "spiky"))
    np.testing.assert_array_equal(spiky.complete[~spiky.outlier_mask], quiet.complete[~spiky.outlier_mask])
    assert spiky.outlier_mask.mean() == pytest.approx(0.05, abs=0.01)
    linear, multiplicative = (regimes([kind], slices=60, seed=3) for kind in ("linear", "multiplicative"))
    np.testing.assert_array_equal(linear.low_rank, multiplicative.low_rank)
    assert np.log(multiplicative.complete / multiplicative.low_rank).std() == pytest.approx(0.2, rel=0.05)
    covariance = regimes(["covariance"], slices=300, seed=3).low_rank.reshape(300, -1)
    assert np.linalg.matrix_rank(np.cov(covariance.T)) == covariance.shape[1]


def test_an_unknown_kind_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown kind levl: choose from level, factors"):
        regimes(["levl"])
