"""The covariance against the textbook's formulas with an explicit inverse, and against the law it should find."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import METHODS, covariance


def test_one_step_is_the_conditional_mean_and_an_update() -> None:
    draw = np.random.default_rng(0)
    config = covariance.Config(mean_half_life=5.0, covariance_half_life=9.0, shrinkage=0.3)
    state = covariance.init(config, (3, 2))
    values = draw.standard_normal((12, 3, 2)) + 4
    for slice_values in values[:-1]:
        state, _ = covariance.step(state, slice_values)
    newest, mask = values[-1], np.array([[1, 0], [1, 1], [0, 1]], dtype=bool)
    after, result = covariance.step(state, newest, mask)

    seen, hidden = mask.ravel(), ~mask.ravel()
    deviation = np.sqrt(np.diag(state.covariance))
    shrunk = np.where(np.eye(6) > 0, 1.0, 0.7) * state.covariance
    inverse = np.linalg.inv(shrunk[np.ix_(seen, seen)])
    slopes = shrunk[np.ix_(hidden, seen)] @ inverse
    away = np.zeros(6)
    away[seen] = (newest.ravel() - state.mean)[seen]
    away[hidden] = slopes @ away[seen]
    np.testing.assert_allclose(result.low_rank.ravel(), state.mean + away, rtol=1e-10)

    left = np.zeros((6, 6))
    left[np.ix_(hidden, hidden)] = shrunk[np.ix_(hidden, hidden)] - slopes @ shrunk[np.ix_(seen, hidden)]
    weight = 0.5 ** (1 / 9) * state.weight + 1
    expected = state.covariance + (np.outer(away, away) + left - state.covariance) / weight
    np.testing.assert_allclose(after.covariance, expected, rtol=1e-10)
    count = 0.5 ** (1 / 5) * state.seen[0] + 1
    np.testing.assert_allclose(after.mean[seen], (state.mean + away / count)[seen], rtol=1e-10)
    np.testing.assert_array_equal(after.mean[hidden], state.mean[hidden])
    assert (deviation > 0).all()


def test_finds_the_best_linear_prediction() -> None:
    draw = np.random.default_rng(1)
    mixing = draw.standard_normal((12, 3))
    truth = draw.standard_normal((600, 3)) @ mixing.T + 0.1 * draw.standard_normal((600, 12))
    mask = draw.random(truth.shape) < 0.6
    mask[np.arange(600), np.arange(600) % 12] = False  # something to find in every slice
    settings = {"mean_half_life": 1e4, "covariance_half_life": 1e4, "shrinkage": 1e-4}
    state = covariance.init(covariance.Config(**settings), (12,))
    law = mixing @ mixing.T + 0.01 * np.eye(12)
    own, best = [], []
    for values, seen in zip(truth, mask, strict=True):
        state, result = covariance.step(state, values, seen)
        slopes = law[np.ix_(~seen, seen)] @ np.linalg.inv(law[np.ix_(seen, seen)])
        own.append(np.mean((result.low_rank - values)[~seen] ** 2))
        best.append(np.mean((slopes @ values[seen] - values[~seen]) ** 2))
    # Memory without end keeps the poor fills of the start, so not quite the least error.
    assert np.mean(own[300:]) < 4 * np.mean(best[300:])
    assert np.mean(own[300:]) < 0.05 * truth.var(axis=0).mean()


def test_large_slices_are_refused_with_a_sentence() -> None:
    method = METHODS["covariance"]
    assert method.most_entries == covariance.MOST_ENTRIES
    with pytest.raises(ValueError, match="at most 2000 entries for a full covariance, got 2500: choose") as caught:
        method.init(method.configure(), (50, 50))
    assert "\n" not in str(caught.value)
