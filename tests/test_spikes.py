"""The first entries ever to be wrong, in a stream that was clean until then."""

import numpy as np
import pytest

import undertow as ut
from undertow.lab import metrics

FIRST = 16


def clean(seed):
    """Slices of rank 3 with a fifth hidden, and the truth."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(20, 3)), draw.normal(size=(12, 3))
    truth = np.stack([(left * draw.normal(size=3)) @ right.T for _ in range(FIRST + 2)])
    hidden = draw.random(truth.shape) < 0.2
    return np.where(hidden, np.nan, truth + 0.05 * draw.normal(size=truth.shape)), truth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "level"),
    [(0, False), *(pytest.param(*case, marks=pytest.mark.full) for case in [(1, False), (0, True), (1, True)])],
)
@pytest.mark.parametrize("size", [10.0, 1e3, -9999.0])
@pytest.mark.parametrize("count", [1, 12])
def test_a_first_spike_is_flagged_and_does_not_become_the_low_rank(count, size, seed, level):
    slices, truth = clean(seed)
    spikes = np.zeros(truth[0].shape, bool)
    spikes.flat[np.random.default_rng(seed).permutation(np.flatnonzero(~np.isnan(slices[FIRST])))[:count]] = True
    model = ut.RobustCP(max_rank=6, window=10, level=level).partial_fit(slices[:FIRST])
    before = metrics.relative_error(model.smoothed().low_rank, truth[FIRST - 1])
    result = model.update(slices[FIRST] + size * spikes)
    np.testing.assert_array_equal(result.outlier_probability > 0.5, spikes)
    assert metrics.relative_error(result.low_rank, truth[FIRST]) < 4 * before + 0.02
    after = model.update(slices[FIRST + 1])
    assert not (after.outlier_probability > 0.5).any()
    assert metrics.relative_error(after.low_rank, truth[FIRST + 1]) < 4 * before + 0.02
