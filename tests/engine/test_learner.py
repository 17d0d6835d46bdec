"""A model and its history: what is refused changes nothing; a model that is not robust predicts before it learns."""

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine import functional, learner
from undertow.inputs.dense import as_slice
from undertow.inputs.sparse import Entries
from undertow.lab.synthetic.streams import drifting

SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4}
VALUES = drifting(SHAPE, 2, slices=6, seed=0).values


def test_what_is_sent_ahead():
    start = learner.start(ut.make_config(**SMALL), SHAPE)
    given = learner.transfer(start, as_slice(VALUES[0]))
    assert given.host.shape == SHAPE
    indices = (np.array([0]), np.array([1]))
    assert learner.transfer(start, Entries(indices, np.ones(1), SHAPE)) is None
    assert start.layout == (SHAPE, False)


@pytest.mark.slow
def test_a_copy_is_a_state_of_its_own():
    start = learner.start(ut.make_config(**SMALL), SHAPE)
    kept = start.copy()
    once, _ = learner.step(start, as_slice(VALUES[0]))
    again, _ = learner.step(kept, as_slice(VALUES[0]))
    for one, other in zip(jax.tree.leaves(once.state.core), jax.tree.leaves(again.state.core), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (once.state.steps, once.history.counts.seen) == (1, 1)


@pytest.mark.slow
def test_bad_input_leaves_the_model_as_it_is():
    model = ut.RobustCP(**SMALL).partial_fit(VALUES[:4])
    before = model._learner
    arrays = [np.array(leaf) for leaf in jax.tree.leaves(before.state.core)]
    bad = VALUES[4].copy()
    bad[2, 3] = np.inf
    for wrong in (bad, np.zeros((2, 2)), np.full(SHAPE, "a")):
        with pytest.raises((ValueError, TypeError), match="x must"):
            model.update(wrong)
        assert model._learner is before
    with pytest.raises(ValueError, match="x must be finite"):
        model.partial_fit(np.stack([VALUES[4], bad]))
    assert model._learner is before
    for old, new in zip(arrays, jax.tree.leaves(before.state.core), strict=True):
        np.testing.assert_array_equal(old, np.array(new))


@pytest.mark.slow
@pytest.mark.parametrize("robust", [True, False])
def test_only_a_model_that_is_not_robust_predicts_a_slice_before_it_learns_it(robust, monkeypatch):
    asked, real = [], functional.cross_predict

    def counted(state, given):
        asked.append(state.steps)
        return real(state, given)

    monkeypatch.setattr(functional, "cross_predict", counted)
    model = ut.RobustCP(**SMALL, robust=robust)
    for x in VALUES[:3]:
        model.update(x)
    assert asked == ([] if robust else [0, 1, 2])
