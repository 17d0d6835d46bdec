"""The naive methods against what their names say."""

from __future__ import annotations

import numpy as np

from undertow.lab.baselines import naive
from undertow.lab.baselines.baseline import BaselineResult


def run(config: naive.Config, values: np.ndarray) -> list[BaselineResult]:
    state, results = naive.init(config, values.shape[1:]), []
    for one in values:
        state, result = naive.step(state, one)
        results.append(result)
    return results


def patchy(seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((20, 4, 3))
    values[draw.random(values.shape) < 0.4] = np.nan
    return values


def test_last_value_is_the_last_value() -> None:
    values = patchy()
    results = run(naive.Config(kind="last"), values)
    for index in np.ndindex(4, 3):
        series = values[(slice(None), *index)]
        for t in range(20):
            seen = series[: t + 1][~np.isnan(series[: t + 1])]
            if len(seen):
                assert results[t].low_rank[index] == seen[-1]


def test_mean_is_the_weighted_mean_of_the_values_seen() -> None:
    values = patchy(1)
    result = run(naive.Config(kind="mean", forgetting=0.6), values)[-1]
    for index in np.ndindex(4, 3):
        series = values[(slice(None), *index)]
        seen = series[~np.isnan(series)][::-1]
        weights = 0.6 ** np.arange(len(seen))
        np.testing.assert_allclose(result.low_rank[index], (weights * seen).sum() / weights.sum(), rtol=1e-12)


def test_median_is_the_median_of_the_window() -> None:
    values = patchy(2)
    for window in (1, 4, 5):
        results = run(naive.Config(kind="median", window=window), values)
        for t in range(window, 20):
            recent = values[t - window + 1 : t + 1]
            present = ~np.isnan(recent).all(axis=0)
            expected = np.nanmedian(recent[:, present], axis=0)
            np.testing.assert_allclose(results[t].low_rank[present], expected, rtol=1e-12)


def test_median_holds_when_its_window_ran_empty() -> None:
    values = np.full((6, 2), np.nan)
    values[:, 1] = 1.0
    values[0, 0] = 7.0
    results = run(naive.Config(kind="median", window=2), values)
    assert results[-1].low_rank[0] == 7.0


def test_never_seen_entries_get_the_mean_of_the_others() -> None:
    for kind in ("last", "mean", "median"):
        result = run(naive.Config(kind=kind), np.array([[2.0, 4.0, np.nan]]))[0]
        np.testing.assert_array_equal(result.low_rank, [2.0, 4.0, 3.0])
        assert result.prediction is None


def test_prediction_is_the_estimate_before_the_slice() -> None:
    results = run(naive.Config(kind="last"), np.array([[1.0, 2.0], [5.0, 2.0]]))
    assert results[1].prediction is not None
    assert results[1].outlier_score is not None
    np.testing.assert_array_equal(results[1].prediction, [1.0, 2.0])
    np.testing.assert_array_equal(results[1].outlier_score, [4.0, 0.0])
