"""Slices as pictures."""

import numpy as np
import pytest

from undertow.report.pictures import picture, shrunk
from undertow.view.drawing import limits, plane


def test_the_plane_with_most_to_show_is_chosen():
    interest = np.zeros((4, 3, 5))
    interest[2, 1, 3] = 9.0
    arrays, fixed = plane({"x": np.arange(60.0).reshape(4, 3, 5)}, interest)
    assert fixed == {1: 1}
    np.testing.assert_array_equal(arrays["x"], np.arange(60.0).reshape(4, 3, 5)[:, 1, :])


def test_large_slices_become_small_pictures_that_show_every_outlier():
    values = np.zeros((1000, 700))
    values[777, 333] = 5.0
    assert shrunk(values).max() == 5.0
    assert len(picture("x", values, 0, 5, "gray")) < 21_000
    assert limits(np.zeros((2, 2))) == (0.0, 0.0)
    assert limits(np.full((2, 2), np.nan)) == (0.0, 1.0)
    assert limits(np.array([1.0, -4.0]), around_zero=True)[1] == pytest.approx(4, rel=0.01)
