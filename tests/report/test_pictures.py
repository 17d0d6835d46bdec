"""Slices as maps: what the script of the page gets."""

import base64
import json
import re
import zlib
from html import unescape

import numpy as np
import pytest

from undertow.report.pictures import Sides, picture, shrunk
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
    assert len(picture("x", values, 0, 5, "viridis")) < 21_000
    assert limits(np.zeros((2, 2))) == (0.0, 0.0)
    assert limits(np.full((2, 2), np.nan)) == (0.0, 1.0)
    assert limits(np.array([1.0, -4.0]), around_zero=True)[1] == pytest.approx(4, rel=0.01)


def test_a_map_has_255_colours_and_one_for_nothing():
    sides = Sides("src", "dst", None, ("a", "b", "c"))
    drawn = picture("x", np.array([[0.0, 2.54, np.nan], [5.08, -1.0, 9.0]]), 0.0, 5.08, "viridis", sides)
    content = json.loads(unescape(re.search(r'data-map="([^"]*)"', drawn)[1]))
    assert list(zlib.decompress(base64.b64decode(content["levels"]))) == [0, 127, 255, 254, 0, 254]
    assert content["columns"] == ["a", "b", "c"]
    assert content["labelled"] == [False, True]
    assert content["values"][2] == ""
