"""river: a sample is a dictionary of features; a completing transformer and an anomaly detector."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.adapters.models import new_model, seen

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"this needs {error.name}: pip install 'undertow[river]'", name=error.name) from None

_log = logging.getLogger("undertow")


class _Learner:
    """Features by name, in alphabetical order; the first sample names them unless they are given."""

    def __init__(self, model: Any = None, features: tuple[Any, ...] | None = None) -> None:
        self.model = model
        self.features = features
        self._names: list[Any] = [] if features is None else list(features)
        self._model: Any = None

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Learn from the next sample; features that are missing in it are missing entries."""
        if not self._names:
            self._names = sorted(
                (name for name, value in x.items() if _is_number(value)), key=lambda n: (str(n), repr(n))
            )
        if not self._names:
            return
        if self._model is None:
            self._model = new_model(self.model)
        self._note_others(x)
        self._model.update(self._array(x))

    def _seen(self, x: dict[Any, Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
        return None if self._model is None else seen(self._model, self._array(x))

    def _array(self, x: dict[Any, Any]) -> NDArray[np.float64]:
        return np.array([float(x[n]) if _is_number(x.get(n)) else math.nan for n in self._names])

    def _note_others(self, x: dict[Any, Any]) -> None:
        others = [name for name in x if name not in self._names]
        if others and not getattr(self, "_noted", False):
            self._noted = True
            _log.warning(
                "features that were not in the first sample are not learned, %s first: give all with features=",
                others[0],
            )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": "cp"}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, complex) and abs(value) != math.inf


class Completer(_Learner, base.Transformer):
    """Gives every feature as it should be, missing ones included; other values pass through.

    Parameters
    ----------
    model
        None for `undertow.Tracker()`; "cp" for `undertow.RobustCP()`; or a model, whose settings are used.
    features
        Names of all features; by default those of the first sample.

    Examples
    --------
    >>> import undertow as ut
    >>> from undertow.adapters.river import Completer
    >>> completer = Completer(ut.RobustCP(max_rank=3, window=4))
    >>> for t in range(5):
    ...     completer.learn_one({name: (t + 1.0) * size for size, name in enumerate("abcdefg", 1)})
    >>> sorted(completer.transform_one({"a": 6.0, "c": 18.0}))
    ['a', 'b', 'c', 'd', 'e', 'f', 'g']

    """

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """What the features of a sample should be; nothing is learned."""
        found = self._seen(x)
        if found is None:
            return dict(x)
        return {**x, **dict(zip(self._names, map(float, found[0]), strict=True))}


class Detector(_Learner, base.AnomalyDetector):
    """Scores samples by the largest probability that one of their features is an outlier.

    Parameters are those of `Completer`.

    Examples
    --------
    >>> import undertow as ut
    >>> from undertow.adapters.river import Detector
    >>> detector = Detector(ut.RobustCP(max_rank=3, window=4))
    >>> for t in range(5):
    ...     detector.learn_one({name: (t + 1.0) * size for size, name in enumerate("abcdefg", 1)})
    >>> 0 <= detector.score_one({"a": 6.0, "c": 18.0}) <= 1
    True

    """

    def score_one(self, x: dict[Any, Any]) -> float:
        """0 for a sample in which nothing is wrong, to 1; nothing is learned."""
        found = self._seen(x)
        return 0.0 if found is None else float(found[1].max())
