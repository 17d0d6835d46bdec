"""The local level against a loop over entries and paces, and what robustness and the choice of a pace are for."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import local_level

PACES, BOUND, RHO = (0.1, 1.0), 3.0, 0.9


class PlainEntry:
    """One entry: a filter for every pace, scalars only."""

    def __init__(self) -> None:
        self.begun = False
        self.levels, self.variances, self.losses = [0.0] * 2, [0.0] * 2, [0.0] * 2
        self.squares = self.weight = 0.0

    def best(self) -> int:
        return int(np.argmin(self.losses))

    def step(self, value: float | None, deviation: float) -> None:
        if not self.begun:
            if value is not None:
                self.begun, self.levels, self.variances = True, [value] * 2, [1.0] * 2
            return
        best, spread = self.best(), 0.0
        for k, pace in enumerate(PACES):
            variance = self.variances[k] + pace
            if value is None:
                self.variances[k] = variance
                continue
            gain, error = variance / (variance + 1), value - self.levels[k]
            limit = BOUND * deviation * np.sqrt(variance + 1)
            bounded = max(-limit, min(limit, error))
            knee = BOUND * deviation
            huber = error**2 if abs(error) <= knee else 2 * knee * abs(error) - knee**2
            if k == best:
                spread = bounded**2 / (variance + 1)
            self.levels[k] += gain * bounded
            self.variances[k] = gain
            self.losses[k] = RHO * self.losses[k] + huber
        if value is not None:
            self.squares, self.weight = RHO * self.squares + spread, RHO * self.weight + 1


def test_is_the_plain_filter_of_every_entry() -> None:
    draw = np.random.default_rng(0)
    values = np.cumsum(draw.standard_normal((40, 3, 2)), axis=0) + draw.standard_normal((40, 3, 2))
    values[20, 1] += 50.0
    values[draw.random(values.shape) < 0.3] = np.nan
    entries = [PlainEntry() for _ in range(6)]
    state = local_level.init(local_level.Config(paces=PACES, bound=BOUND, forgetting=RHO), (3, 2))
    for slice_values in values:
        state, result = local_level.step(state, slice_values)
        weight = sum(entry.weight for entry in entries)
        mean = sum(entry.squares for entry in entries) / weight if weight else np.inf
        deviations = [np.sqrt((entry.squares + 3 * mean) / (entry.weight + 3)) for entry in entries]
        for entry, value, deviation in zip(entries, slice_values.ravel(), deviations, strict=True):
            entry.step(None if np.isnan(value) else float(value), deviation)
        seen = [entry.levels[entry.best()] for entry in entries if entry.begun]
        expected = [entry.levels[entry.best()] if entry.begun else np.mean(seen) for entry in entries]
        np.testing.assert_allclose(result.low_rank.ravel(), expected, rtol=1e-10)


def error(values: np.ndarray, truth: np.ndarray, **settings: object) -> float:
    state = local_level.init(local_level.Config(**settings), values.shape[1:])  # type: ignore[arg-type]
    errors = []
    for slice_values, slice_truth in zip(values, truth, strict=True):
        state, result = local_level.step(state, slice_values)
        errors.append(np.abs(result.low_rank - slice_truth).mean())
    return float(np.mean(errors[20:]))


@pytest.mark.parametrize(("move", "pace"), [(0.1, 0.01), (3.0, 10.0)])
def test_finds_the_pace(move: float, pace: float) -> None:
    draw = np.random.default_rng(1)
    truth = np.cumsum(move * draw.standard_normal((150, 30)), axis=0)
    values = truth + draw.standard_normal(truth.shape)
    assert error(values, truth) < 1.1 * error(values, truth, paces=(pace,))


def test_outliers_leave_the_level_alone() -> None:
    draw = np.random.default_rng(2)
    truth = np.full((100, 30), 5.0)
    values = truth + 0.1 * draw.standard_normal(truth.shape)
    hit = draw.random(truth.shape) < 0.05
    hit[:20] = False
    assert error(values + 100 * hit, truth) < 0.1 * error(values + 100 * hit, truth, bound=1e9)


def test_paces_must_be_positive() -> None:
    for bad in ((), (0.0,), (0.1, np.inf)):
        with pytest.raises(ValueError, match="paces must be one or more numbers above 0, got"):
            local_level.Config(paces=bad)
