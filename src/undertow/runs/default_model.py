"""The model that a user gets who names none: in `undertow.run`, the command line, the demo and the scoreboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undertow.tracker.estimator import Tracker


MOVING = 200
"""Slices after which a pixel of a picture has changed for good: what stands still for less is not the background."""


def default_model(pictures: bool = False, believed_after: int | None = None) -> Tracker:
    """A new tracker: nothing to set.

    Args:
        pictures: Whether slices are pictures: in films things that move stay for a while.
        believed_after: After how many slices a change is believed, if that was asked for.
    """
    from undertow.tracker.estimator import Tracker  # not before it is needed: it brings jax

    return Tracker(believed_after=believed_after or (MOVING if pictures else None))


def extend(model: Any, shape: Sequence[int]) -> None:
    """Rows for labels that have come to a stream.

    Args:
        model: As `undertow.Tracker`; in another one rows for all must have been there from the beginning.
        shape: Of the next slice.

    Raises:
        TypeError: The model cannot have further rows.
    """
    if not hasattr(model, "extend"):
        raise TypeError(
            f"{type(model).__name__} has no method extend(shape), which labels that come need: "
            "let all have slots from the beginning, with a larger --capacity"
        )
    model.extend(shape)


def update(model: Any, values: Any, time: Any) -> Any:
    """The model's result for a slice; trackers take its time too, so that gaps count."""
    if hasattr(model, "in_order"):
        return model.update(values, time=model.in_order(time))
    return model.update(values)
