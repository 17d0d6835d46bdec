"""The simulation of many shards, against what can be said on paper."""

import numpy as np
import pytest

from undertow.lab.studies.capacity import Costs, simulated


def test_costs_are_found_from_fleets_of_several_sizes():
    members = np.array([8, 64, 512])
    found = Costs.fitted(members, 0.01 + 2e-4 * members, [5000, 4000, 3900])
    assert (found.fixed, found.each, found.state) == pytest.approx((0.01, 2e-4, 3900))
    assert Costs.fitted([8, 64], [0.1, 0.05], [1, 1]).each == 0
    assert Costs.fitted([8, 64], [0.001, 0.1], [1, 1]).fixed == 0


def test_a_calm_shard_waits_for_nobody():
    found = simulated(Costs(1e-4, 1e-5, 1000), 1000, 1, period=10, trigger=1, seed=0)
    assert (found.largest, found.state) == (1000, 1e6)
    # A slice waits for half the distance of two batches, about, and then for its own.
    assert found.median == pytest.approx(0.5, abs=0.06)
    assert found.late == pytest.approx(1.0, abs=0.06)
    assert found.busy == pytest.approx((1e-4 * 10 + 1e-5 * 1000) / 10, rel=0.05)
    assert found.batch == pytest.approx(100, rel=0.05)
    assert found.cores == found.busy


def test_batches_grow_until_the_fixed_cost_is_paid_for():
    """Without a pause, a batch of n takes a + b n, in which n = rate (a + b n) come."""
    costs, rate = Costs(0.5, 1e-3, 1), 400
    found = simulated(costs, 40_000, 1, period=100, trigger=0, seed=0)
    assert found.batch == pytest.approx(rate * 0.5 / (1 - rate * 1e-3), rel=0.05)
    assert found.busy == pytest.approx(1, abs=0.02)


def test_too_much_work_shows_as_delays_that_grow():
    found = simulated(Costs(0, 2e-3, 1), 10_000, 1, period=10, trigger=0, seed=0)
    assert found.busy > 0.9
    assert found.late > 50  # twice as much as it can do
    several = simulated(Costs(0, 2e-3, 1), 10_000, 4, period=10, trigger=0, seed=0)
    assert several.busy == pytest.approx(0.5, rel=0.1)
    assert several.late < 0.1
    assert 2500 < several.largest < 2800
