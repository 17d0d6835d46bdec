"""Scales on which a baseline may be given the data: each entry transformed before, its answer transformed back.

Numbers are in units of the typical size of the first slice, so that the choice of a scale does not depend on the unit
of the data. Counts want square roots, sizes want logarithms; both transforms here take zeros and negatives.

    linear  x
    sqrt    sign(x) √|x|
    asinh   asinh(10 x): linear up to a tenth of the typical size, logarithmic beyond

What comes back is the transform of an estimate of a mean, so nearer to a median: nothing is corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_LARGEST = 1e30  # an answer that has run away stays finite, in single precision too, and is scored as what it is
_KNEE = 10.0


@dataclass(frozen=True)
class Scale:
    """A monotone function of an entry, and its inverse."""

    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]


def _square(x: Any) -> Any:
    held = np.clip(x, -np.sqrt(_LARGEST), np.sqrt(_LARGEST))
    return np.sign(held) * held**2


def _sinh(x: Any) -> Any:
    limit = np.arcsinh(_KNEE * _LARGEST)
    return np.sinh(np.clip(x, -limit, limit)) / _KNEE


SCALES: Mapping[str, Scale] = {
    "linear": Scale(lambda x: x, lambda x: x),
    "sqrt": Scale(lambda x: np.sign(x) * np.sqrt(np.abs(x)), _square),
    "asinh": Scale(lambda x: np.arcsinh(_KNEE * x), _sinh),
}
"""Every scale by name."""
