"""Curves: what the script of the page gets."""

import json
import re
from html import unescape

import numpy as np
import pytest

from undertow.report.chart import Curve, chart, reduced, shown


def test_thinning_keeps_the_peaks():
    values = np.zeros(10_000)
    values[1234], values[8765] = 7.0, -3.0
    picks = reduced(values)
    assert len(picks) <= 702
    assert {0, 1234, 8765, 9999} <= set(picks.tolist())


def test_a_curve_has_gaps_where_there_is_nothing():
    drawn = chart(Curve(np.array([1.0, np.nan, 2.0, np.inf]), "error"), list("abcd"))
    content = json.loads(unescape(re.search(r'data-chart="([^"]*)"', drawn)[1]))
    assert content["lines"] == [{"values": [1.0, None, 2.0, None]}]
    assert content["how"]["labels"] == list("abcd")
    assert content["slices"] == [0, 1, 2, 3]
    assert "no values" in chart(Curve(np.array([np.nan, np.nan]), "error"), ["a", "b"])


@pytest.mark.parametrize(
    ("value", "percent", "text"),
    [(0.0, False, "0"), (0.01234, True, "1.23 %"), (1234567.0, False, "1.23e+06"), (12345.0, False, "12,345")],
)
def test_numbers_as_people_write_them(value, percent, text):
    assert shown(value, percent) == text
