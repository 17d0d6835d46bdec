"""The fair second column of a table: a rival with its settings chosen on a separate validation stream.

Every entry of the registry names the few values worth trying for its knobs (`Method.grid`). All combinations run over
the validation stream, and the one with the smallest median error of the low-rank slice wins, the earlier one in a draw.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.baselines.registry import Method
from undertow.baselines.result import Array, Mask


@dataclass(frozen=True)
class Trial:
    """One combination: its configuration, the knobs that were set, and its error (infinite where it diverged)."""

    config: Any
    knobs: dict[str, Any]
    error: float


def combinations(method: Method, **fixed: Any) -> Iterator[dict[str, Any]]:
    """Every combination of the grid, the fixed knobs left alone; the published settings come first."""
    yield dict(fixed)
    free = {knob: values for knob, values in method.grid.items() if knob not in fixed}
    published = method.configure(**fixed)
    for values in itertools.product(*free.values()):
        chosen = dict(zip(free, values, strict=True))
        if any(getattr(published, knob) != value for knob, value in chosen.items()):
            yield {**fixed, **chosen}


def median_error(method: Method, config: Any, values: Array, masks: Mask | None, truth: Array, first: int) -> float:
    """Median over the slices from `first` on of ‖L − truth‖ / ‖truth‖; infinite if a slice diverged."""
    state = method.init(config, values.shape[1:])
    errors = []
    for t in range(len(values)):
        state, result = method.step(state, values[t], None if masks is None else masks[t])
        if result.status == "diverged":
            return float("inf")
        if t >= first:
            errors.append(np.linalg.norm(result.low_rank - truth[t]) / np.linalg.norm(truth[t]))
    return float(np.median(errors))


def tune(
    method: Method, values: Array, masks: Mask | None, truth: Array, *, first: int = 0, **fixed: Any
) -> tuple[Trial, list[Trial]]:
    """The best combination on the stream (T, *shape), and all that were tried.

    `fixed` knobs (rank, seed, period …) stay as given. `truth` is the low-rank stream, or clean data to compare with.
    """
    if not 0 <= first < len(values):
        raise ValueError(f"first must be a slice of the stream, between 0 and {len(values) - 1}, got {first}.")
    trials = []
    for knobs in combinations(method, **fixed):
        config = method.configure(**knobs)
        trials.append(Trial(config, knobs, median_error(method, config, values, masks, truth, first)))
    return min(trials, key=lambda trial: trial.error), trials
