import numpy as np
import pytest

from undertow.lab.synthetic.dynamics import autoregressive, seasonal


def test_rows_remember():
    stream = autoregressive(slices=3000, memory=0.95, seed=0)
    one, next_one = stream.low_rank[:-1].ravel(), stream.low_rank[1:].ravel()
    assert np.corrcoef(one, next_one)[0, 1] == pytest.approx(0.95, abs=0.02)
    carried = np.linalg.norm(one - next_one) / np.linalg.norm(one)
    assert carried == pytest.approx(np.sqrt(2 * 0.05), rel=0.1)
    assert np.abs(stream.low_rank).mean() == pytest.approx(1)
    assert np.linalg.matrix_rank(stream.low_rank[7], tol=1e-9) == 3


def test_season_and_trend():
    stream = seasonal(slices=200, period=20, seed=0)
    growth = stream.low_rank[20:] - stream.low_rank[:-20]  # the season cancels
    np.testing.assert_allclose(growth, np.broadcast_to(growth[0], growth.shape), rtol=1e-9)
    assert (growth > 0).all()
    assert stream.mask.mean() == pytest.approx(0.5)
