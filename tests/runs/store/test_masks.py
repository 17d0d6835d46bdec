"""Gaps in masks are filled, against the definition of a closing."""

import numpy as np
import pytest

from undertow.runs.store.masks import filled


def closed(flagged):
    """A pixel belongs to it if every square of three by three pixels that covers it meets a flagged one."""
    rows, columns = flagged.shape
    wide = np.pad(flagged, 3)
    found = np.zeros_like(flagged)
    for row in range(rows):
        for column in range(columns):
            squares = [
                wide[top : top + 3, left : left + 3]
                for top in range(row + 1, row + 4)
                for left in range(column + 1, column + 4)
            ]
            found[row, column] = all(square.any() for square in squares)
    return found


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("shape", [(9, 11), (1, 6), (2, 2)])
def test_masks_are_closings(shape, share):
    for seed in range(3):
        flagged = np.random.default_rng(seed).random(shape) < share
        before = flagged.copy()
        found = filled(flagged)
        np.testing.assert_array_equal(found, closed(flagged))
        np.testing.assert_array_equal(flagged, before)
        assert (found | flagged == found).all()


def test_a_hole_is_filled_and_what_stands_alone_does_not_grow():
    flagged = np.zeros((12, 12), bool)
    flagged[1:8, 1:8] = True
    flagged[3:5, 3:5] = False
    flagged[10, 10] = True
    expected = flagged.copy()
    expected[3:5, 3:5] = True
    np.testing.assert_array_equal(filled(flagged), expected)
