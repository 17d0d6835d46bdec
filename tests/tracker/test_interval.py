"""Intervals and means of a stream of sizes, whose noise is far from symmetric: one tracker, a fleet, and RobustCP."""

import numpy as np
import pytest

import undertow as ut
from undertow.lab.synthetic.noises import proportional

pytestmark = pytest.mark.slow
SHAPE = (6, 5)
SIZES = proportional(0.5, SHAPE, slices=60, seed=3).complete
AROUND_ZERO = np.random.default_rng(1).normal(size=(60, *SHAPE)) + 0.5
LATE = slice(20, None)


@pytest.fixture(scope="module")
def results():
    fleet, tracker = ut.Fleet(2, SHAPE, model="tracker"), ut.Tracker()
    alone, together = [], []
    for sizes, other in zip(SIZES, AROUND_ZERO, strict=True):
        alone.append(tracker.update(sizes))
        together.append(fleet.update(np.stack([sizes, other])))
    return alone, together


def bounds(results, level=0.95):
    return (np.array(part)[LATE] for part in zip(*(one.interval(level) for one in results), strict=True))


def test_bounds_hold_what_they_say_and_stay_above_zero(results):
    alone, _ = results
    assert alone[-1].settings["scale"] == "log"
    for level in (0.5, 0.8, 0.95):
        lower, upper = bounds(alone, level)
        inside = (lower <= SIZES[LATE]) & (SIZES[LATE] <= upper)
        assert np.mean(inside) == pytest.approx(level, abs=0.06)
        assert lower.min() >= 0
        means = np.array([one.mean for one in alone[LATE]])
        assert (means > lower).all()
        assert (means < upper).all()


def test_totals_are_those_of_the_observations(results):
    means = np.array([one.mean for one in results[0][LATE]])
    assert means.sum() / SIZES[LATE].sum() == pytest.approx(1, abs=0.03)


def test_outliers_are_what_lies_beyond_the_mean():
    tracker = ut.Tracker()
    for x in SIZES[:40]:
        tracker.update(x)
    spoiled = SIZES[40].copy()
    spoiled[2, 3] *= 1000
    result = tracker.update(spoiled)
    assert result.outlier_probability[2, 3] > 0.99
    expected = result.outlier_probability * (spoiled - result.mean)
    np.testing.assert_allclose(result.outliers, expected, rtol=1e-4, atol=1e-4 * np.median(SIZES))


def test_a_fleet_has_them_by_member(results):
    alone, together = results
    for level in (0.5, 0.95):
        everyone = together[-1].interval(level)
        for own, member, single in zip(
            together[-1][0].interval(level), everyone, alone[-1].interval(level), strict=True
        ):
            np.testing.assert_allclose(own, member[0], rtol=1e-5)
            np.testing.assert_allclose(own, single, rtol=0.05)
    linear, result = together[-1][1].interval(), together[-1][1]
    assert result.settings["scale"] == "linear"
    for side, bound in ((-1, linear.lower), (1, linear.upper)):
        np.testing.assert_allclose(bound, result.mean + side * 1.96 * result.std, rtol=1e-4, atol=1e-4)
    assert linear.lower.min() < 0


def test_members_without_a_slice_have_none():
    fleet = ut.Fleet(2, SHAPE, model="tracker")
    fleet.update(SIZES[:2])
    lower, upper = fleet.update(SIZES[2:4], present=[True, False]).interval()
    assert np.isfinite(lower[0]).all()
    assert np.isfinite(upper[0]).all()
    assert np.isnan(lower[1]).all()
    assert np.isnan(upper[1]).all()


@pytest.mark.parametrize(("level", "error"), [(0, ValueError), (1.0, ValueError), (95, ValueError), ("95", TypeError)])
def test_levels_that_are_none_are_refused(results, level, error):
    with pytest.raises(error, match=r"level must be .* 0.95 is the interval of 95 %"):
        results[0][-1].interval(level)


def test_a_cp_model_on_the_logarithmic_scale_has_them_too():
    model, fleet = ut.RobustCP(max_rank=3, window=4, scale="log"), ut.Fleet(2, SHAPE, max_rank=3, window=4, scale="log")
    for sizes, other in zip(SIZES[:8], AROUND_ZERO, strict=False):
        single, everyone = model.update(sizes), fleet.update(np.stack([sizes, other]))
    lower, upper = single.interval()
    assert (lower >= 0).all()
    assert (lower < single.mean).all()
    assert (single.mean < upper).all()
    np.testing.assert_allclose(((upper - lower) / (2 * 1.96))[lower > 0], single.std[lower > 0], rtol=1e-3)
    narrow = single.interval(0.5)
    assert (narrow.lower > lower).all()
    assert (narrow.upper < upper).all()
    for found, expected in zip(everyone[0].interval(), (lower, upper), strict=True):
        np.testing.assert_allclose(found, expected, atol=0.05 * float(np.median(single.std)))
    assert everyone[1].interval().lower.min() < 0  # negative numbers have been seen
    again = model.smoothed()
    np.testing.assert_allclose(again.mean, single.mean, rtol=1e-4)
    np.testing.assert_allclose(again.interval().lower, lower, rtol=1e-4, atol=1e-6)


def test_on_the_linear_scale_they_are_symmetric():
    model = ut.RobustCP(max_rank=3, window=4)
    for x in AROUND_ZERO[:6]:
        result = model.update(x)
    lower, upper = result.interval()
    np.testing.assert_allclose(upper - result.mean, 1.96 * result.std, rtol=1e-3)
    np.testing.assert_allclose(result.mean - lower, 1.96 * result.std, rtol=1e-3)
