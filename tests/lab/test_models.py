import numpy as np
import pytest

import undertow
from undertow.lab.baselines import METHODS
from undertow.lab.models import DEFAULT, MODELS, BaselineModel, follow, maker


def test_a_baseline_becomes_a_model_with_the_same_answers():
    values = np.random.default_rng(0).uniform(1, 2, (6, 4, 3))
    values[2, 1] = np.nan
    track = follow(BaselineModel(METHODS["last_value"]), values)
    np.testing.assert_allclose(track.low_rank[2, 1], values[1, 1], rtol=1e-6)
    assert track.std is None
    assert track.probability is None
    assert track.score is not None


def test_the_unit_is_that_of_the_first_slice_that_has_one():
    baseline = METHODS["online_sgd"]
    assert baseline.needs_unit_scale
    values = np.random.default_rng(0).uniform(1, 2, (5, 4, 3))
    blank = np.stack([np.full((4, 3), np.nan), np.zeros((4, 3))])
    one, thousand = (
        follow(BaselineModel(baseline, rank=2), np.concatenate([blank, unit * values])) for unit in (1, 1e3)
    )
    np.testing.assert_allclose(thousand.low_rank, 1e3 * one.low_rank, rtol=1e-4)


def test_models_have_the_package_s_own_first():
    assert MODELS["cp"] is undertow.RobustCP
    assert DEFAULT in ("tracker", "cp")
    assert isinstance(maker("moving_mean", {"forgetting": 0.5})(), BaselineModel)
    with pytest.raises(ValueError, match="unknown method nothing: choose from"):
        maker("nothing", {})
