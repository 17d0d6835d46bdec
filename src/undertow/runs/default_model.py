"""The model that a user gets who names none: in `undertow.run`, the command line, the demo and the scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undertow.estimator import RobustCP


def default_model(preset: str = "default", **settings: Any) -> RobustCP:
    """A new model.

    Args:
        preset: One of `undertow.config.PRESETS`.
        **settings: Fields of `undertow.Config`.
    """
    from undertow.estimator import RobustCP  # not before it is needed: it brings jax

    return RobustCP(preset, **settings)
