"""The exponent of a power law, from measurements at several sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """b of value ≈ a · sizeᵇ by least squares on logarithms."""
    if len(sizes) < 2:
        raise ValueError(f"sizes must be two or more, got {len(sizes)}: a slope needs a line")
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(values, dtype=float))
    x = x - x.mean()
    return float(x @ y / (x @ x))


def last_slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """b between the two largest sizes, where fixed costs weigh least."""
    return slope(sizes[-2:], values[-2:])
