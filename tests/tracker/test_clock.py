"""Steps between slices, by their times."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.tracker.clock import Clock, advanced, coming, in_order


def gaps(times):
    clock, found = Clock(), []
    for time in times:
        clock, steps = advanced(clock, time)
        found.append(steps)
    return found


@given(st.floats(1e-3, 1e6), st.integers(2, 30))
def test_regular_times_are_as_none(step, count):
    np.testing.assert_allclose(gaps(step * np.arange(count)), 1, rtol=1e-6)
    assert gaps([None] * count) == [1.0] * count


def test_a_gap_counts_in_usual_steps():
    found = gaps([0, 10, 20, 30, 40, 100, 110, 115])
    assert found == pytest.approx([1, 1, 1, 1, 1, 6, 1, 0.5])


def test_a_long_gap_does_not_become_usual():
    assert gaps([0, 1, 2, 3, 4, 1000, 1001, 1002])[-2:] == [1, 1]


def test_kinds_of_times_agree():
    start = datetime(2026, 3, 29, 0, 30)
    hours = [0, 1, 2, 3, 9]
    naive = [start + timedelta(hours=hour) for hour in hours]
    expected = [1, 1, 1, 1, 6]
    assert gaps(naive) == gaps([np.datetime64(time) for time in naive]) == expected
    assert gaps([time.replace(tzinfo=UTC) for time in naive]) == expected
    east = [time.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5))) for time in naive]
    assert gaps(east) == expected


@pytest.mark.parametrize("time", ["2026-01-01", np.nan, np.inf, True, np.datetime64("NaT"), [1]])
def test_what_is_no_time_is_refused(time):
    with pytest.raises(TypeError, match="time must be a finite number, datetime or datetime64"):
        advanced(Clock(), time)


def test_late_slices_and_duplicates_are_refused():
    clock, _ = advanced(Clock(), 5)
    for time in (5, 4):
        with pytest.raises(ValueError, match="later than that of the slice before"):
            advanced(clock, time)


def test_a_refusal_says_by_how_much_and_which_kind():
    dated, _ = advanced(Clock(), np.datetime64("2026-03-01T05"))
    for time, message in (
        (np.datetime64("2026-03-01T03"), "2:00:00 earlier"),
        (datetime(2026, 3, 1, 6, tzinfo=timezone(timedelta(hours=1))), "the same again"),
        (7.0, "of the kind of those before, dates, got a number, 7.0"),
    ):
        with pytest.raises(ValueError, match=message):
            advanced(dated, time)
    with pytest.raises(ValueError, match="of the kind of those before, numbers, got a date"):
        advanced(advanced(Clock(), 5)[0], datetime(2026, 3, 1))


def test_times_as_they_come_are_put_in_order():
    clock = Clock()
    for time, expected in ((5, 5.0), (7, 7.0), (6, None), (7, None), (None, None), (np.nan, None), (9, 9.0)):
        found = in_order(clock, time)
        assert found == expected if expected else clock.last < found < clock.last + 1e-9
        clock, _ = advanced(clock, found)
    without, _ = advanced(Clock(), in_order(Clock(), "Monday"))
    assert in_order(without, 7) is None


def test_dates_as_they_come_stay_dates():
    clock, first = Clock(), np.datetime64("2026-03-01T05", "s")
    for hours, expected in ((0, 1), (1, 1), (1, 0), (0, 0), (2, 1), (2, 0), (3, 1)):
        clock, steps = advanced(clock, in_order(clock, first + np.timedelta64(hours, "h")))
        assert steps == pytest.approx(expected, abs=1e-6)


def test_a_slice_without_a_time_comes_a_usual_step_later():
    assert gaps([0, 10, 20, 30, None, 50, None, None, 80, 100]) == pytest.approx([1] * 9 + [2])
    assert gaps([0, None, 20]) == [1, 1, 1]


def test_times_are_given_from_the_first_slice_on():
    with pytest.raises(ValueError, match="from the first slice on: give it to all, or to none"):
        advanced(advanced(Clock(), None)[0], 6)


def test_times_of_the_next_slices():
    clock, dated = Clock(), Clock()
    assert coming(clock, 2) is None
    for hour in range(4):
        clock, _ = advanced(clock, 10 + 2 * hour)
        dated, _ = advanced(dated, np.datetime64("2026-03-01T00") + hour)
    np.testing.assert_array_equal(coming(clock, 3), [18, 20, 22])
    assert list(coming(dated, 2)) == [np.datetime64("2026-03-01T04"), np.datetime64("2026-03-01T05")]
