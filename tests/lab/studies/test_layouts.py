"""All entries against observed entries only."""

import pytest

from undertow.lab.reporter import Silent
from undertow.lab.studies.layouts import layouts, stream


def test_as_many_entries_are_observed_in_every_slice():
    given = stream((6, 5), 3, 0.3)
    assert [one.values.size for one in given] == [9, 9, 9]
    assert len({tuple(one.indices[0]) + tuple(one.indices[1]) for one in given}) == 3


@pytest.mark.full
def test_both_layouts_are_timed_and_agree():
    (row,) = layouts((6, 5), [0.3], max_rank=3, window=4, slices=2, reporter=Silent()).rows
    assert row[:2] == ("30.0%", "9")
    assert all(float(time) > 0 for time in row[2:5])
    assert float(row[5]) < 0.01  # standard deviations of the noise
