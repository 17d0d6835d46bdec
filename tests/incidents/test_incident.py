"""Incident: its sentence."""

import pytest

from undertow.incidents import Incident


@pytest.mark.parametrize(
    ("std", "amount", "size"),
    [
        (9.3, 41.0, "9.3 standard deviations (41)"),
        (-112.0, -616.4, "110 standard deviations (616)"),
        (2345.0, 0.01234, "2,300 standard deviations (0.0123)"),
        (4e9, 3e-8, "4e+09 standard deviations (3e-08)"),
    ],
)
def test_numbers_can_be_read(std, amount, size):
    one = Incident(1, "entry", since=7, last=7, until=7, where="a", count=1, std=std, amount=amount)
    assert one.sentence == f"a: {size} above what was expected at slice 7"
