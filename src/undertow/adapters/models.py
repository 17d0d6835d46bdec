"""What the adapters share: a new model, and what it would say about a slice without learning from it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.estimator import RobustCP
from undertow.tracker.estimator import Tracker


def new_model(given: Any) -> Any:
    """A model that has seen nothing.

    Args:
        given: None or "tracker"; "cp"; or a model, whose settings the new one has.
    """
    if given is None or given == "tracker":
        return Tracker()
    if given == "cp":
        return RobustCP()
    if hasattr(given, "update") and hasattr(given, "get_params"):
        return type(given)(**given.get_params())
    raise ValueError(f"model must be None, 'tracker', 'cp' or a model such as undertow.RobustCP(...), got {given!r}.")


def seen(model: Any, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and outlier probabilities of a slice as if it came next; the model stays as it was."""
    result = copy.copy(model).update(x)
    return np.asarray(result.mean), np.asarray(result.outlier_probability)
