"""SOFIA: Holt-Winters and the dynamic update against loops, the start and the forecasts against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import holt_winters, sofia
from undertow.lab.baselines.sofia_start import robust_start

SHAPE, PERIOD, CYCLES, RANK = (16, 14), 12, 3, 2

pytestmark = pytest.mark.slow


def seasonal(slices: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Low rank, corrupted values, mask, and where the outliers are."""
    draw = np.random.default_rng(seed)
    factors = [draw.standard_normal((size, RANK)) for size in SHAPE]
    phase = 2 * np.pi * np.arange(slices)[:, None] / PERIOD + np.array([0.0, 2.0])
    low_rank = np.einsum("ar,br,tr->tab", *factors, 2 + np.sin(phase))
    wrong = draw.random(low_rank.shape) < 0.08
    values = low_rank + 0.01 * draw.standard_normal(low_rank.shape)
    values = values + 30.0 * wrong * draw.choice([-1.0, 1.0], low_rank.shape)
    return low_rank, values, draw.random(low_rank.shape) < 0.8, wrong


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def test_holt_winters_advances_as_its_equations_say() -> None:
    draw = np.random.default_rng(0)
    level, trend, season, row = draw.random(2), draw.random(2), draw.random((3, 2)), draw.random(2)
    smoothing = np.array([[0.5, 0.3], [0.2, 0.1], [0.4, 0.6]])
    found_level, found_trend, found_season = map(np.array, holt_winters.advance(row, level, trend, season, smoothing))
    for r in range(2):
        alpha, beta, gamma = smoothing[:, r]
        new_level = alpha * (row[r] - season[0, r]) + (1 - alpha) * (level[r] + trend[r])
        new_trend = beta * (new_level - level[r]) + (1 - beta) * trend[r]
        new_season = gamma * (row[r] - level[r] - trend[r]) + (1 - gamma) * season[0, r]
        np.testing.assert_allclose(
            [found_level[r], found_trend[r], *found_season[:, r]],
            [new_level, new_trend, *season[1:, r], new_season],
            rtol=1e-6,
        )


def test_holt_winters_fit_forecasts_a_season_with_a_trend() -> None:
    time = np.arange(48)
    rows = np.stack([3 + 0.1 * time + np.sin(2 * np.pi * time / 8), 100 * np.cos(2 * np.pi * time / 8)], axis=1)
    level, trend, season, smoothing = holt_winters.fit(rows[:40], 8)
    alpha, beta, gamma = smoothing
    assert (alpha > 0).all()
    assert (beta <= alpha).all()
    assert (gamma <= 1 - alpha).all()
    for t in range(40, 48):
        wrong = np.abs(holt_winters.forecast(level, trend, season) - rows[t])
        assert (wrong < [0.02, 0.5]).all()
        level, trend, season = map(np.array, holt_winters.advance(rows[t], level, trend, season, smoothing))


def test_the_start_sees_through_outliers_and_gaps() -> None:
    low_rank, values, mask, wrong = seasonal(PERIOD * CYCLES)
    factors, rows, found, outliers = robust_start(
        np.moveaxis(values * mask, 0, -1), np.moveaxis(mask, 0, -1), RANK, PERIOD, (1e-3, 1e-3, 10.0), (300, 1e-3), 0
    )
    assert relative(found, np.moveaxis(low_rank, 0, -1)) < 0.03
    np.testing.assert_allclose([np.linalg.norm(factor, axis=0) for factor in factors], 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.einsum("ar,br,tr->abt", *factors, rows), found, atol=1e-9)
    flagged = np.moveaxis(np.abs(outliers) > 15, -1, 0)
    np.testing.assert_array_equal(flagged, wrong & mask)


def test_forecasts_and_follows_a_seasonal_stream() -> None:
    low_rank, values, mask, wrong = seasonal(PERIOD * (CYCLES + 2))
    state = sofia.init(sofia.Config(rank=RANK, period=PERIOD), SHAPE)
    for t in range(len(values)):
        state, result = sofia.step(state, values[t], mask[t])
        if t < PERIOD * CYCLES - 1:
            assert result.status == "initialising"
        elif t >= PERIOD * CYCLES:
            assert result.prediction is not None
            assert result.outliers is not None
            assert relative(result.prediction, low_rank[t]) < 0.1
            assert relative(result.low_rank, low_rank[t]) < 0.1
            np.testing.assert_array_equal(np.abs(result.outliers) > 15, wrong[t] & mask[t])


def test_dynamic_update_equals_the_plain_version() -> None:
    _, values, mask, _ = seasonal(PERIOD * CYCLES + 1)
    config = sofia.Config(rank=RANK, period=PERIOD, iterations=20)
    state = sofia.init(config, SHAPE)
    for t in range(PERIOD * CYCLES):
        state, _ = sofia.step(state, values[t], mask[t])
    left, right = state.factors
    expected = state.level + state.trend + state.season[0]
    residual = mask[-1] * (values[-1] - left @ np.diag(expected) @ right.T)
    cleaned = np.clip(residual, -2 * state.scale, 2 * state.scale)
    slopes = [cleaned @ right @ np.diag(expected), cleaned.T @ left @ np.diag(expected)]
    slopes.append(
        np.array([left[:, r] @ cleaned @ right[:, r] for r in range(RANK)])
        + 1e-3 * (state.rows[-1] - expected)
        + 1e-3 * (state.rows[0] - expected)
    )
    clipped = [slope * min(1.0, 0.1 * np.sqrt(RANK) / np.linalg.norm(slope)) for slope in slopes]
    left, right, row = left + 0.1 * clipped[0], right + 0.1 * clipped[1], expected + 0.1 * clipped[2]
    new, result = sofia.step(state, values[-1], mask[-1])
    np.testing.assert_allclose(result.low_rank, left @ np.diag(row) @ right.T, rtol=1e-8, atol=1e-9)
    assert result.outliers is not None
    np.testing.assert_allclose(result.outliers, residual - cleaned, atol=1e-9)
    ratio = residual / state.scale
    rho = np.where(np.abs(ratio) <= 2, 2.52 * (1 - (1 - (ratio / 2) ** 2) ** 3), 2.52)
    grown = np.where(mask[-1], np.sqrt((0.01 * rho + 0.99) * state.scale**2), state.scale)
    np.testing.assert_allclose(new.scale, grown, rtol=1e-9)


def test_one_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycles must be at least 2"):
        sofia.Config(cycles=1)
