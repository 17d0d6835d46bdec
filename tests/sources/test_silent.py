"""Silences that are no chance."""

import numpy as np
import pytest

import undertow as ut
from undertow.sources.describe import describe
from undertow.sources.silent import Silent


@pytest.mark.parametrize("observed", [1.0, 0.3])
def test_who_falls_silent_is_found_and_nobody_else(observed):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((400, 5, 4)) < observed, 1.0, np.nan)
    x[250:, 2, 3] = np.nan
    x[:, 0, 0] = np.nan  # never observed: not in use
    x[380:] = np.where(np.arange(380, 400)[:, None, None] < 390, x[380:], np.nan)  # nothing at all at the end
    silent = Silent((5, 4))
    for one in x:
        silent.add(one)
    assert silent.found() == [(2, 3)]


def test_they_are_named():
    x = np.ones((60, 2))
    x[20:, 1] = np.nan
    assert describe(ut.open_stream(x, modes="room", labels={"room": ["roof", "hall"]}))["silent"] == ["hall"]
