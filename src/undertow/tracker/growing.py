"""More components for the CP models that have none free, where that is worth the time."""

from __future__ import annotations

import numpy as np

from undertow.tracker.core import Core
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.cp import CP, GROWTH_INTERVAL

FAR_BEHIND = 2.0
"""Error of a CP model over that of the best predictor, beyond which it is not components that it lacks: of slices that
are nearly all zeros it fits the zeros, ever more closely, and predicts eight to two hundred times worse than others."""
PACE = 1
"""Of `FORGETTING`, the pace at which that is judged: ten slices."""


def grown(models: tuple[CP, ...], core: Core) -> tuple[CP, ...]:
    """Every few slices: with more slots where all are in use and predictions are not far behind.

    Args:
        models: Before the next slice.
        core: With the errors of what they predicted so far.
    """
    return tuple(
        model.grown() if model.state.steps % GROWTH_INTERVAL == 0 and model.full() and near(number, core) else model
        for number, model in enumerate(models)
    )


def near(number: int, core: Core) -> bool:
    """Whether the predictions of this CP model are not far behind the best."""
    squares = np.diagonal(np.asarray(core.gram)[PACE])
    return bool(squares[len(registry.NAMES) + number] <= FAR_BEHIND**2 * squares.min())
