"""What a tracker says of a slice beside its arrays: a limit that binds, error bars before anything was judged."""

import numpy as np
import pytest

import undertow as ut
from undertow.tracker import output
from undertow.tracker.estimator import update_together
from undertow.tracker.predictors import cp

pytestmark = pytest.mark.slow
SHAPE = (6, 5)


def day(slices, seed=0):
    """A few hours of sizes that differ from hour to hour by factors of ten, nearly without noise."""
    draw = np.random.default_rng(seed)
    hour, left, right = draw.normal(size=(slices, 1, 1)), draw.uniform(1, 2, 6)[:, None], draw.uniform(1, 2, 5)
    return np.exp(3 + hour * left * right + 0.03 * draw.normal(size=(slices, *SHAPE)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("growing", [False, True])
def test_error_bars_are_no_smaller_than_what_is_left_before_anything_was_judged(seed, growing):
    tracker = ut.Tracker()
    for x in np.sort(day(2, seed), axis=0) if growing else day(2, seed):
        result = tracker.update(x)
        assert np.mean(np.abs(x - result.mean)) < 2 * np.median(result.std)


def test_a_limit_that_binds_says_so(monkeypatch):
    draw = np.random.default_rng(0)
    slices = draw.uniform(1, 2, (4, 2, 1, 1)) * np.outer(np.arange(1, 7), np.arange(1, 6)) + draw.normal(size=SHAPE) / 9
    one, fleet, many = ut.Tracker(), ut.Fleet(2, SHAPE, model="tracker"), [ut.Tracker(), ut.Tracker()]
    for pair in slices:
        single, everyone, together = one.update(pair[0]), fleet.update(pair), update_together(many, list(pair))
    every = [single, everyone[0], everyone[1], *together]
    assert min(max(map(int, each._output.ranks)) for each in every) > 0
    assert not any("RANK_FULL" in each.status.codes for each in every)
    monkeypatch.setattr(output, "largest_rank", lambda shape: 1)
    again = [ut.Result(each._output) for each in every]
    assert all("RANK_FULL" in each.status.codes for each in again)
    assert all(each.status.ok == before.status.ok for each, before in zip(again, every, strict=True))


def test_capacity_grows_to_the_limit_that_is_spoken_of():
    shape = (30, 30)
    model = cp.CP.new(cp.configs(shape)[1], shape)
    for _ in range(8):
        model = cp.CP(model.state, rank=model.state.capacity).grown()
    assert model.state.config.max_rank == cp.largest_rank(shape) == cp.LARGEST_RANK
    assert cp.largest_rank((200, 200)) == cp.LARGEST_RANK_LARGE
