"""Tracker: the estimator as users have it, on slices of one shape so that little is compiled."""

import copy
import pickle
import threading

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import undertow as ut
from undertow.lab.synthetic.streams import drifting

pytestmark = pytest.mark.slow
SHAPE = (6, 5)
DATA = drifting(SHAPE, 2, slices=22, observed=0.8, drift=0.3, seed=4)
VALUES = DATA.values
FIELDS = ("mean", "std", "low_rank", "low_rank_std", "outliers", "outlier_probability")


def run(slices, tracker=None):
    tracker = ut.Tracker() if tracker is None else tracker
    return [tracker.update(x) for x in slices]


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.weights == other.weights
    assert one.status.codes == other.status.codes


def usable(result, shape=SHAPE):
    """What holds whatever the data are."""
    for name in FIELDS:
        array = getattr(result, name)
        assert array.shape == shape
        assert np.isfinite(array).all(), name
    assert (result.std >= 0).all()
    assert (result.outlier_probability >= 0).all()
    assert (result.outlier_probability <= 1).all()
    assert sum(result.weights.values()) == pytest.approx(1, abs=1e-5)
    assert min(result.weights.values()) >= 0
    assert result.rank >= 0


@pytest.fixture(scope="module")
def results():
    return run(VALUES)


@pytest.fixture(scope="module")
def begun():
    tracker = ut.Tracker()
    run(VALUES[:12], tracker)
    return tracker


@pytest.fixture
def tracker(begun):
    return copy.copy(begun)


def test_results_are_complete_and_good(results):
    for result in results:
        usable(result)
    hidden = ~DATA.mask[10:]
    error = np.array([result.mean for result in results[10:]]) - DATA.low_rank[10:]
    assert np.linalg.norm(error[hidden]) < 0.6 * np.linalg.norm(DATA.low_rank[10:][hidden])


def test_nothing_depends_on_chance(results):
    for one, other in zip(results, run(VALUES), strict=True):
        same(one, other)


@pytest.mark.parametrize("power", [-200, -40, 40, 200])
def test_powers_of_two_change_the_unit_and_nothing_else(results, power):
    factor = 2.0**power
    for one, other in zip(results, run(VALUES * factor), strict=True):
        for name in FIELDS:
            expected = getattr(one, name) * (1 if name == "outlier_probability" else factor)
            np.testing.assert_array_equal(getattr(other, name), expected, err_msg=name)
        assert one.weights == other.weights


def test_a_large_offset_changes_little(results):
    for one, other in zip(results, run(VALUES + 2.0**20), strict=True):
        assert np.max(np.abs(other.mean - 2.0**20 - one.mean) / one.std) < 0.05


def test_the_order_of_rows_does_not_matter(results):
    order = np.array([3, 0, 5, 1, 4, 2])
    for one, other in zip(results, run(VALUES[:, order]), strict=True):
        assert np.max(np.abs(other.mean - one.mean[order]) / one.std[order]) < 0.05


@pytest.mark.full
def test_the_order_of_modes_does_not_matter(results):
    for one, other in zip(results, run(VALUES.transpose(0, 2, 1)), strict=True):
        assert np.max(np.abs(other.mean.T - one.mean) / one.std) < 0.05


@pytest.mark.parametrize("seen", [1, 4, 12])
def test_a_saved_tracker_goes_on_bit_for_bit(results, tmp_path, seen):
    tracker = ut.Tracker()
    run(VALUES[:seen], tracker)
    tracker.save(tmp_path / "tracker.ckpt")
    loaded = ut.load(tmp_path / "tracker.ckpt")
    assert repr(loaded) == repr(tracker)
    for one, other in zip(results[seen:], run(VALUES[seen:], loaded), strict=True):
        same(one, other)
    assert ut.from_bytes(tracker.to_bytes()).to_bytes() == tracker.to_bytes()


def test_a_pickle_goes_on_bit_for_bit(tracker, results):
    for one, other in zip(results[12:14], run(VALUES[12:14], pickle.loads(pickle.dumps(tracker))), strict=True):
        same(one, other)


def test_copies_are_independent(tracker, results):
    for other in (copy.copy(tracker), copy.deepcopy(tracker)):
        other.update(VALUES[3] + 5)
        same(results[12], copy.copy(tracker).update(VALUES[12]))


def test_partial_fit_is_update_and_fit_starts_anew(tracker, results):
    assert tracker.partial_fit(VALUES[12:15]) is tracker
    same(results[15], tracker.update(VALUES[15]))
    same(results[3], tracker.fit(list(VALUES[:3])).update(VALUES[3]))


def test_transform_learns_nothing(tracker, results):
    before = tracker.to_bytes()
    filled = tracker.transform(VALUES[12:14])
    assert tracker.to_bytes() == before
    np.testing.assert_array_equal(filled[0], results[12].mean)
    assert filled.shape == (2, *SHAPE)


def test_there_is_nothing_to_set(tracker):
    assert tracker.get_params() == {"period": None, "believed_after": None, "grow": False}
    assert tracker.set_params() is tracker
    with pytest.raises(ValueError, match="nothing to set but its period, believed_after and grow, got max_rank"):
        tracker.set_params(max_rank=3)
    assert repr(tracker) == "Tracker()  # 12 slices of 6×5"
    assert repr(ut.Tracker()) == "Tracker()"


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.zeros((5, 6)), ValueError),
        (np.full(SHAPE, np.inf), ValueError),
        (np.zeros(SHAPE, complex), TypeError),
        ("slice", TypeError),
        (np.zeros((0, 5)), ValueError),
        (None, TypeError),
        (sparse.csr_matrix((4, 4)), ValueError),
    ],
)
def test_bad_input_leaves_the_tracker_as_it_was(tracker, bad, error):
    before = tracker.to_bytes()
    with pytest.raises(error) as caught:
        tracker.update(bad)
    assert "\n" not in str(caught.value)
    with pytest.raises(error):
        tracker.partial_fit([VALUES[12], bad])
    assert tracker.to_bytes() == before


def test_what_needs_slices_says_so():
    with pytest.raises(ValueError, match="transform needs at least one slice"):
        ut.Tracker().transform(VALUES[:1])
    with pytest.raises(ValueError, match="stack of slices"):
        ut.Tracker().partial_fit(np.zeros(3))


def test_masks_and_gaps_are_the_same(results):
    tracker = ut.Tracker()
    for x, result in zip(VALUES[:6], results, strict=False):
        missing = np.isnan(x)
        same(result, tracker.update(np.where(missing, 1e9, x), mask=~missing))


def test_sparse_input_is_the_same(results):
    tracker = ut.Tracker()
    for x, result in zip(VALUES[:6], results, strict=False):
        rows, columns = np.nonzero(~np.isnan(x))
        one = sparse.coo_matrix((x[rows, columns], (rows, columns)), shape=SHAPE)
        same(result, tracker.update(one))


def test_empty_slices_teach_nothing(tracker, results):
    for _ in range(3):
        empty = tracker.update(np.full(SHAPE, np.nan))
        usable(empty)
        assert empty.status.codes == ("EMPTY",)
        assert not empty.outlier_probability.any()
    after = tracker.update(VALUES[12])
    np.testing.assert_allclose(after.mean, results[12].mean, atol=0.2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, np.int64, bool])
def test_every_type_of_number(dtype):
    slices = [np.nan_to_num(10 * x).astype(dtype) for x in np.abs(VALUES[:4])]
    for result in run(slices):
        usable(result)
        assert result.mean.dtype == (np.float64 if dtype is np.int64 else np.float32)


def test_threads_may_share_trackers(results):
    shared, outcomes = ut.Tracker(), {}

    def alone(number):
        outcomes[number] = run(VALUES[:5])

    def together():
        run(VALUES[:5], shared)

    threads = [threading.Thread(target=alone, args=(number,), daemon=True) for number in range(3)]
    threads += [threading.Thread(target=together, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    for number in range(3):
        same(results[4], outcomes[number][4])
    assert "10 slices" in repr(shared)


CONSTANT = np.arange(30.0).reshape(SHAPE)
BEGINNINGS = {
    "zeros": [np.zeros(SHAPE)] * 4,
    "constant": [np.full(SHAPE, 7.0)] * 4,
    "constant entries": [CONSTANT] * 4,
    "one entry": [np.where(CONSTANT == 7, 3.0 + number, np.nan) for number in range(4)],
    "negative": [-np.abs(x) - 1 for x in VALUES[:4]],
    "nothing": [np.full(SHAPE, np.nan)] * 4,
    "garbage": [VALUES[0] * 1e10],
    "tiny": [VALUES[0] * 1e-200],
    "alternating": [np.ones(SHAPE), -np.ones(SHAPE)] * 2,
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_after_any_beginning_it_finds_its_way(name, results):
    """As many slices again as are remembered, and the beginning is forgotten."""
    found = run([*BEGINNINGS[name], *VALUES])
    for result in found:
        usable(result)
    truth, size = DATA.low_rank[-4:], np.linalg.norm(DATA.low_rank[-4:])
    error = np.linalg.norm(np.array([result.mean for result in found[-4:]]) - truth)
    reached = np.linalg.norm(np.array([result.mean for result in results[-4:]]) - truth)
    assert error < reached + 0.3 * size


@pytest.mark.parametrize("factor", [1e-8, 1e6, 1e8, 1e10, 1e13, 1e16])
def test_a_change_of_unit_in_mid_stream_is_survived(factor):
    for result in run([*VALUES[:10], *VALUES[10:] * factor]):
        usable(result)


def test_entries_of_very_different_size_are_survived():
    for result in run(VALUES[:10] * np.geomspace(1e-8, 1e8, 30).reshape(SHAPE)):
        usable(result)


NUMBERS = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, np.nan, 1.0, -1.0, 1e-20, 1e20])


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(slices=st.lists(arrays.arrays(np.float64, SHAPE, elements=NUMBERS), min_size=1, max_size=5))
def test_any_numbers_give_usable_results(slices):
    for result in run(slices):
        usable(result)


@pytest.mark.full
@pytest.mark.parametrize("shape", [(1,), (7,), (1, 1), (1, 4), (4, 3, 2), (2, 3, 2, 2)])
def test_any_shape_gives_usable_results(shape):
    rng = np.random.default_rng(0)
    slices = rng.normal(size=(6, *shape))
    slices[rng.random(slices.shape) < 0.2] = np.nan
    for result in run(slices):
        usable(result, shape)


def test_one_gross_outlier_is_an_outlier_and_not_a_slice_that_is_off():
    draw = np.random.default_rng(0)
    x = 20 + np.outer(np.arange(1.0, 7), np.arange(1.0, 6)) + 0.5 * draw.normal(size=(20, 6, 5))
    x[19, 2, 3] = -200.0
    tracker = ut.Tracker()
    results = [tracker.update(one) for one in x]
    assert np.argwhere(results[-1].outlier_probability > 0.5).tolist() == [[2, 3]]
    assert "SLICE_OFF" not in results[-1].status.codes


def test_innovations_are_what_outliers_are_judged_by(results):
    """NaN where nothing was observed or predicted; the farther an observation lies off, the likelier an outlier."""
    assert np.isnan(results[0].innovations).all()
    for result, x in zip(results[3:], VALUES[3:], strict=True):
        assert (np.isnan(result.innovations) == np.isnan(x)).all()
        if "SLICE_OFF" not in result.status.codes:
            seen = ~np.isnan(x)
            order = np.argsort(np.abs(result.innovations[seen]))
            assert (np.diff(result.outlier_probability[seen][order]) >= -1e-6).all()
    clean = np.concatenate([result.innovations[~np.isnan(result.innovations)] for result in results[10:]])
    assert 0.3 < np.median(np.abs(clean)) < 1.5  # in standard deviations


# Seasons, forecasts and times.

PERIOD = 8


def seasonal(slices, seed=0):
    """A profile of eight slices that every entry follows in its own way, and noise."""
    rng = np.random.default_rng(seed)
    profile = 3 * rng.normal(size=(PERIOD, *SHAPE)) + 10
    return profile[np.arange(slices) % PERIOD] + 0.1 * rng.normal(size=(slices, *SHAPE))


@pytest.fixture(scope="module")
def after_seasons():
    tracker = ut.Tracker(period=PERIOD)
    run(seasonal(5 * PERIOD), tracker)
    return tracker


def test_a_season_is_forecast_and_a_copy_goes_on(after_seasons):
    truth = seasonal(7 * PERIOD)[5 * PERIOD :]
    made = after_seasons.forecast(2 * PERIOD)
    assert made.mean.shape == made.std.shape == truth.shape
    assert np.abs(made.mean - truth).mean() < 0.3
    assert 0.85 <= (np.abs(made.mean - truth) <= 1.96 * made.std).mean() <= 1
    again = ut.from_bytes(after_seasons.to_bytes())
    np.testing.assert_array_equal(again.forecast(3).mean, made.mean[:3])
    np.testing.assert_array_equal(again.forecast(3).std, made.std[:3])
    same(again.update(truth[0]), copy.copy(after_seasons).update(truth[0]))


def test_a_slice_of_nothing_is_what_the_season_says(after_seasons):
    truth = seasonal(5 * PERIOD + 1)[-1]
    found = copy.copy(after_seasons).update(np.full(SHAPE, np.nan))
    assert np.abs(found.mean - truth).mean() < 1 < np.abs(found.mean.mean() - truth).mean()


def test_a_forecast_changes_nothing(tracker):
    other = copy.copy(tracker)
    tracker.forecast(4)
    same(tracker.update(VALUES[12]), other.update(VALUES[12]))


def test_regular_times_change_nothing_and_a_gap_widens_error_bars(tracker):
    dated, gone = ut.Tracker(), ut.Tracker()
    for number, x in enumerate(VALUES[:12]):
        dated.update(x, time=60.0 * number)
        gone.update(x, time=60.0 * number)
    unobserved = np.full(SHAPE, np.nan)
    expected = tracker.update(unobserved)
    same(dated.update(unobserved, time=60.0 * 12), expected)
    later = gone.update(unobserved, time=60.0 * 60)
    assert (later.std >= expected.std).all()
    assert later.std.mean() > 1.02 * expected.std.mean()


def test_labelled_slices_bring_their_times():
    hours = np.array([0, 1, 2, 3, 4, 30, 31, 32])
    times = np.datetime64("2026-03-01T00", "ns") + np.timedelta64(1, "h") * hours
    stack = xr.DataArray(VALUES[:8], dims=("time", "src", "dst"), coords={"time": times})
    given = ut.Tracker()
    for x, time in zip(VALUES[:6], times, strict=False):
        expected = given.update(x, time=time)
    carried = ut.Tracker().fit(stack[:5])
    np.testing.assert_array_equal(carried.update(stack[5]).plain("std"), expected.std)
    again = carried.update(stack[5])  # the same again: just after it
    assert np.isfinite(again.plain("std")).all()
    carried.update(VALUES[6])  # without a time: an hour later
    assert carried.forecast(2).times[0] == times[6] + np.timedelta64(1, "h")
    assert ut.Tracker().fit(VALUES[:5]).partial_fit(stack[5:]).forecast().times is None


def test_bad_times_periods_and_horizons_are_refused(tracker):
    with pytest.raises(ValueError, match="give it to all, or to none"):
        tracker.update(VALUES[12], time=3)
    for slices in (0, 10_001, 1.5, True, "1"):
        with pytest.raises(ValueError, match="slices must be an integer from 1 to 10000"):
            tracker.forecast(slices)
    with pytest.raises(ValueError, match="at least one slice"):
        ut.Tracker().forecast()
    for period in (0, 1, -3, 2.5, True, "day"):
        with pytest.raises(ValueError, match="period must be an integer of at least 2"):
            ut.Tracker(period=period)
    with pytest.raises(ValueError, match="before the first slice"):
        tracker.set_params(period=4)
    assert ut.Tracker().set_params(period=4).get_params()["period"] == 4
    with pytest.raises(ValueError, match="believed_after must be an integer of at least 1, in slices, or None to let"):
        ut.Tracker(believed_after=0)


@pytest.mark.slow
def test_how_soon_changes_are_believed_is_given_shown_and_kept():
    level, draw = 10 * np.ones(SHAPE), np.random.default_rng(0)
    believed = {}
    for after in (None, 2, 9):
        tracker = ut.Tracker(believed_after=after)
        for _ in range(20):
            result = tracker.update(level + draw.normal(size=SHAPE))
        assert result.settings.get("believed_after") == after
        tracker = ut.from_bytes(tracker.to_bytes())
        assert tracker.get_params()["believed_after"] == after
        moved = level.copy()
        moved[1, 2] += 40
        codes = [tracker.update(moved + draw.normal(size=SHAPE)).status.codes for _ in range(12)]
        believed[after] = ["LASTING_CHANGE" in found for found in codes].index(True) + 1
    assert believed == {None: 4, 2: 2, 9: 9}


def test_the_answer_is_what_the_predictors_say_weighed(results):
    for x, result in list(zip(VALUES, results, strict=True))[5:]:
        hidden = np.isnan(x)
        assert list(result.predictions) == list(result.weights)
        said = sum(result.weights[name] * values for name, values in result.predictions.items())
        np.testing.assert_allclose(said[hidden], result.mean[hidden], rtol=1e-3, atol=0.02)
