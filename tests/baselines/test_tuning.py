"""Tuning picks what is best on the validation stream, published settings included; scaling undoes itself."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.baselines import METHODS, tune, unit_scaled
from undertow.baselines.tuning import combinations
from undertow.datasets.synthetic import drifting


def test_combinations_start_with_the_published_settings_and_name_each_once() -> None:
    method = METHODS["online_sgd"]
    found = list(combinations(method, rank=2))
    configs = [method.configure(**knobs) for knobs in found]
    assert configs[0] == method.configure(rank=2)
    assert len(configs) == len(set(configs)) == 9
    assert len(list(combinations(method, rank=2, step=0.5, regularisation=0.1))) == 1


def test_tuning_takes_the_smallest_error_and_never_loses_to_the_published_settings() -> None:
    stream = drifting((6, 5), 2, slices=25, outlier_fraction=0.0, drift=0.0, seed=1)
    best, trials = tune(METHODS["olstec"], stream.values, stream.mask, stream.low_rank, first=10, rank=2)
    assert best.error == min(trial.error for trial in trials)
    assert best.error < trials[0].error
    assert best.config.rank == 2


def test_a_diverging_combination_loses() -> None:
    values = 1e160 * np.random.default_rng(0).standard_normal((4, 6, 5))
    best, trials = tune(METHODS["online_sgd"], values, None, values, rank=2, step=1e200, regularisation=0.001)
    assert [trial.error for trial in trials] == [float("inf")]
    assert best is trials[0]


def test_the_first_slice_must_be_one_of_the_stream() -> None:
    with pytest.raises(ValueError, match="first must be a slice"):
        tune(METHODS["last_value"], np.zeros((3, 2)), None, np.zeros((3, 2)), first=3)


def test_scaling_waits_for_the_first_value_that_is_not_zero() -> None:
    method = unit_scaled(METHODS["online_sgd"])
    state = method.init(method.configure(rank=2), (6, 5))
    state, result = method.step(state, np.zeros((6, 5)))
    assert state.scale == 0
    np.testing.assert_allclose(result.low_rank, 0.0, atol=1e-12)
    state, _ = method.step(state, np.full((6, 5), -300.0))
    assert state.scale == 300.0
    state, _ = method.step(state, np.full((6, 5), 5.0))
    assert state.scale == 300.0


def test_scaled_brings_a_diverging_rival_back() -> None:
    stream = drifting((6, 5), 2, slices=30, outlier_fraction=0.0, drift=0.0, seed=2)
    plain, scaled = METHODS["online_sgd"], unit_scaled(METHODS["online_sgd"])
    results = {}
    for name, method in (("plain", plain), ("scaled", scaled)):
        state = method.init(method.configure(rank=2), (6, 5))
        for values in 1e4 * stream.values:
            state, results[name] = method.step(state, values)
    truth = 1e4 * stream.low_rank[-1]
    errors = {name: np.linalg.norm(result.low_rank - truth) / np.linalg.norm(truth) for name, result in results.items()}
    assert errors["scaled"] < 0.7
    assert results["plain"].status == "diverged" or errors["plain"] > errors["scaled"]
