"""The model that a user gets who names none: in `undertow.run`, the command line, the demo and the scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from undertow.tracker.estimator import Tracker


def default_model() -> Tracker:
    """A new tracker: nothing to set."""
    from undertow.tracker.estimator import Tracker  # not before it is needed: it brings jax

    return Tracker()
