"""All baselines by name. A new file is named here twice: imported, and in `_FILES`."""

from __future__ import annotations

from collections.abc import Mapping

from undertow.lab.baselines import (
    brtf,
    cafe,
    covariance,
    grasta,
    local_level,
    naive,
    olrtr,
    olstec,
    online_cp,
    online_sgd,
    sofia,
    tensorly_window,
    toucan,
)
from undertow.lab.baselines.baseline import Baseline

_FILES = (
    naive,
    local_level,
    covariance,
    online_cp,
    online_sgd,
    olstec,
    olrtr,
    toucan,
    brtf,
    grasta,
    sofia,
    cafe,
    tensorly_window,
)

METHODS: Mapping[str, Baseline] = {baseline.name: baseline for file in _FILES for baseline in file.BASELINES}
"""Every baseline by name."""
