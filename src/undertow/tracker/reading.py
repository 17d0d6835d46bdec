"""What is shown of a tracker: read from its state, nothing is changed."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from undertow.engine.state import State
from undertow.tracker import law
from undertow.tracker.output import NAMES
from undertow.tracker.predictors.registry import NAMES as NAMES_BEFORE_CP
from undertow.tracker.state import Tracking
from undertow.view.components import Components
from undertow.view.history import History
from undertow.view.model import ModelView
from undertow.view.names import Names

SHOWN = np.linspace(0.05, 3, 60)
"""Standard deviations at which the calibration is shown."""
ENOUGH = 200.0
"""Observations, discounted, from which on it is."""


def view(state: Tracking, history: History, names: Names, title: str) -> ModelView:
    """All of it."""
    moments = history.moments()
    chosen = int(np.argmax(moments[-1].weights[len(NAMES_BEFORE_CP) :])) if moments else 0
    return ModelView(
        title=title,
        names=names,
        components=components(state.cps[chosen].state, history.since(chosen)),
        predictors=NAMES[: state.core.gram.shape[-1]],
        moments=moments,
        calibration=_calibration(state),
    )


def components(state: State, since: np.ndarray | None = None) -> Components:
    """Those of a CP model, over its window."""
    factors, window = state.core.factors, state.core.window
    length = min(state.steps, state.config.window)
    order = (int(window.newest) - np.arange(length)[::-1]) % state.config.window
    active = np.flatnonzero(state.active)
    modes = tuple(np.asarray(mean, np.float64)[:, active] for mean in factors.means)
    temporal = np.asarray(factors.row_means, np.float64)[order][:, active]
    return Components.of(modes, temporal, None if since is None else since[active])


def _calibration(state: Tracking) -> tuple[np.ndarray, np.ndarray] | None:
    """The fraction of recent clean observations within a number of standard deviations, for several of those."""
    found = state.core.law
    counts = np.asarray(found.counts, np.float64)
    if counts.sum() < ENOUGH:
        return None
    flagged = np.asarray(law.outlier_probability(found, jnp.asarray(law.CENTRES)), np.float64)
    clean = counts * (1 - flagged)
    below = np.cumsum(clean) / clean.sum()
    return SHOWN, np.interp(SHOWN * float(found.spread), law.EDGES[1:], below)
