import numpy as np
import pytest

from undertow.lab.cases.case import Data
from undertow.lab.criteria.measures import flagged, found, hidden_error, mean_error, standardised, usual
from undertow.lab.track import Answer, stack

NAN = np.nan
TRUTH = np.array([[2.0, 4.0], [2.0, 4.0], [0.0, 4.0]])


@pytest.fixture
def data():
    values = np.array([[2.0, NAN], [2.0, NAN], [NAN, 9.0]])
    corrupted = np.array([[False, False], [False, False], [False, True]])
    return Data(values, TRUTH, TRUTH, corrupted, burn_in=1, known_truth=True)


def track(mean, std=1.0, probability=(0.0, 0.0)):
    return stack([Answer(0, np.array(row), std=np.full(2, std), probability=np.array(probability)) for row in mean])


def test_errors_are_means_over_slices_that_have_one(data):
    mean = np.array([[9.0, 9.0], [2.0, 5.0], [3.0, 4.0]])
    assert hidden_error(data, mean) == pytest.approx(0.25)  # the hidden entry of the last slice is zero
    assert hidden_error(data, mean, 0) == pytest.approx((1.25 + 0.25) / 2)
    assert mean_error(np.where(mean == 5, NAN, mean), TRUTH, data.hidden) == np.inf
    assert np.isnan(mean_error(mean, TRUTH, np.zeros((3, 2), bool)))


def test_coverage_is_of_hidden_entries_and_flags_are_of_shown_ones(data):
    answers = track([[9.0, 9.0], [2.0, 5.0], [3.0, 4.0]], 1.0, (0.9, 0.6))
    numbers = usual(data, answers)
    assert numbers["coverage"] == 0.5  # 5 ± 1.96 holds 4, 3 ± 1.96 does not hold 0
    assert numbers["flagged"] == 1.0  # one clean entry was shown after the burn-in
    assert flagged(data, track([[0.0, 0.0]] * 3)) == 0.0


def test_precision_and_recall(data):
    assert found(data, track([[0.0, 0.0]] * 3, 1.0, (0.9, 0.6))) == (0.5, 1.0)
    assert found(data, track([[0.0, 0.0]] * 3, 1.0, (0.9, 0.6)), 0.8) == (0.0, 0.0)
    assert np.isnan(found(data, track([[0.0, 0.0]] * 3))[0])


def test_distances_in_std(data):
    distance = standardised(data, track([[1.0, 1.0]] * 3, 0.5))
    np.testing.assert_allclose(distance, [[2, NAN], [2, NAN], [NAN, 16]])
    assert standardised(data, track([[2.0, 1.0]] * 3, 0.0))[0, 0] == 0
