"""The yardstick of speed: one fixed dense matrix product, so that times from different machines can be compared."""

from __future__ import annotations

import time

import numpy as np

_SIZE, _REPEATS = 512, 7


def matrix_product_seconds() -> float:
    """Median time of one 512×512 product in double precision, now."""
    left = np.random.default_rng(0).standard_normal((_SIZE, _SIZE))
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        left @ left
        times.append(time.perf_counter() - begin)
    return float(np.median(times))
