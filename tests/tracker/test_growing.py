"""Components where all are in use: of models that predict nearly as well as the best."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker.core import fresh_core
from undertow.tracker.growing import FAR_BEHIND, PACE, grown, near
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.cp import CP, GROWTH_INTERVAL, configs

SHAPE = (6, 5)


def core_of(errors):
    """With these errors of three CP models; of all others 1."""
    core = fresh_core(30, 3)
    squares = np.concatenate([np.ones(len(registry.NAMES)), np.square(errors)])
    gram = np.array(core.gram)
    gram[PACE] = np.diag(squares)
    return replace(core, gram=jnp.asarray(gram, jnp.float32))


def test_predictions_are_compared_with_the_best():
    core = core_of([0.9 * FAR_BEHIND, 1.1 * FAR_BEHIND, 0.5])
    assert [near(number, core) for number in range(3)] == [False, False, True]  # the best is the third: .5
    assert [near(number, core_of([0.9 * FAR_BEHIND, 1.1 * FAR_BEHIND, 1.0])) for number in range(3)] == [
        True,
        False,
        True,
    ]


@pytest.mark.slow
def test_what_predicts_badly_gets_no_more_components():
    models = tuple(replace(CP.new(config, SHAPE), rank=99) for config in configs(SHAPE))
    few = [model.state.capacity for model in models]
    after = grown(models, core_of([1.0, 3 * FAR_BEHIND, 1.0]))
    assert [model.state.capacity for model in after] == [2 * few[0], few[1], 2 * few[2]]
    later = tuple(replace(model, state=replace(model.state, steps=GROWTH_INTERVAL + 1)) for model in models)
    assert all(a is b for a, b in zip(grown(later, core_of([1.0] * 3)), later, strict=True))  # only every few slices
    free = tuple(replace(model, rank=few[0] - 1) for model in models)
    assert all(a is b for a, b in zip(grown(free, core_of([1.0] * 3)), free, strict=True))
