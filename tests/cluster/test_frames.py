"""What users say of times, as shards count it."""

from datetime import timedelta

import numpy as np
import pandas
import pytest

from undertow.cluster.frames import span


@pytest.mark.parametrize("given", ["20 minutes", timedelta(minutes=20), np.timedelta64(20, "m"), "PT20M"])
def test_durations_are_microseconds_where_times_are_dates(given):
    assert span("ttl", given, dates=True) == 20 * 60 * 10**6


def test_durations_are_units_of_the_time_where_it_is_a_number():
    assert span("ttl", np.int64(20), dates=False) == 20
    assert span("late", 0, dates=False, least=0) == 0


@pytest.mark.parametrize("given", ["soon", "-1 minute", "0 minutes", 20, 2.5, None, pandas.NaT])
def test_what_is_no_duration_is_refused_in_a_sentence(given):
    with pytest.raises(ValueError, match=r"ttl must be a duration such as '7 days', got"):
        span("ttl", given, dates=True)


@pytest.mark.parametrize("given", ["20 minutes", 0, 2.5, True])
def test_what_is_no_number_is_refused_where_times_are_numbers(given):
    with pytest.raises(ValueError, match="ttl must be an integer of 1 or more, in units of the time, got"):
        span("ttl", given, dates=False)
