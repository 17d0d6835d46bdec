import numpy as np
import pytest

from undertow.lab.references import best_level, best_median, local_level


@pytest.fixture
def values():
    draw = np.random.default_rng(0)
    made = draw.standard_normal((12, 3, 2))
    made[draw.random(made.shape) < 0.3] = np.nan
    made[0, 0] = np.nan
    return made


def plain_filter(series, pace):
    """One entry, one number at a time."""
    mean, variance = None, None
    for y in series:
        if mean is not None:
            variance += pace
        if not np.isnan(y):
            if mean is None:
                mean, variance = y, 1.0
            else:
                gain = variance / (variance + 1)
                mean, variance = mean + gain * (y - mean), (1 - gain) * variance
    return mean


@pytest.mark.parametrize("pace", [0.0, 0.1, 3.0])
def test_level_is_a_kalman_filter_for_every_entry(values, pace):
    filtered = local_level(values, pace)
    for place in np.ndindex(values.shape[1:]):
        assert filtered[-1][place] == pytest.approx(plain_filter(values[(slice(None), *place)], pace))


def test_without_a_pace_the_level_is_the_mean_and_unseen_entries_have_that_of_the_others(values):
    filtered = local_level(values, 0.0)
    np.testing.assert_allclose(filtered[-1], np.nanmean(values, axis=0))
    np.testing.assert_allclose(filtered[0, 0], np.nanmean(values[0]))


def test_the_best_is_the_smallest():
    draw = np.random.default_rng(1)
    constant, walk = draw.standard_normal((60, 9)), np.cumsum(draw.standard_normal((60, 9)), axis=0)

    def error_of(truth):
        return lambda estimates: float(np.mean((estimates[20:] - truth[20:]) ** 2))

    assert best_level(constant, error_of(np.zeros((60, 9))), (0.0, 3.0)) == error_of(0 * constant)(
        local_level(constant, 0.0)
    )
    assert best_level(walk, error_of(walk), (0.0, 3.0)) == error_of(walk)(local_level(walk, 3.0))
    spiky = np.ones((30, 9))
    spiky[::7] = 100
    assert best_median(spiky, error_of(np.ones((30, 9))), (1, 5)) == 0
