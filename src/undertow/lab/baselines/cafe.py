"""CAFÉ: causal adaptive factor estimation, by its own package; needs the package `cafe-impute`.

D. Snow, M. Lyberg, E. Asodekar, "CAFE: Causal Adaptive Factor Estimation", Python package cafe-impute 0.1, 2026.

The package reads a table of times × series, every value as level + season + a few shared factors + heavy-tailed noise,
and fills a gap from its own row and the rows above. Everything about the model is the package's own; it has no
settings. Here a row is a vectorised slice, and the low-rank slice is the filled table less what the package calls
residual: its fill in the gaps, its own explanation of what was observed.

    fit    the whole stream in one call: as the package is meant to be used, and since it never looks ahead the same as
           slice by slice
    step   the package has no state to carry on, so the last `window` slices are run again, and once more with nothing
           observed in the newest for the prediction: seasons and levels older than the window are forgotten there

It keeps a full covariance, so slices are limited to 2,000 entries. Its start is absolute (variances of 1), so the
result depends on the unit of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from undertow.lab.baselines.baseline import SCALES, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.validation import check_settings, finite, observe
from undertow.lab.baselines.window import WindowState, empty, push

MOST_ENTRIES = 2_000


@dataclass(frozen=True)
class Config:
    """Setting of the adapter; the package has none.

    window  slices run again at every step; `fit` takes all
    """

    window: int = 100

    def __post_init__(self) -> None:
        check_settings(self, integer=("window",))


@dataclass(frozen=True)
class Fit:
    """A completed stream of T slices.

    low_rank  the slices, (T, *shape)
    outliers  what the package leaves unexplained of the observed entries, (T, *shape)
    rank      None: the package weighs its factors and drops none
    status    "ok", "no data" or "diverged"
    """

    low_rank: Array
    outliers: Array
    rank: None
    status: str


def fit(config: Config, tensor: Any, mask: Any = None) -> Fit:
    """Complete the stacked stream (T, *shape); every slice from itself and those before it."""
    _package()
    given = np.asarray(tensor)
    if given.ndim < 2:
        raise ValueError(f"tensor must be slices stacked along the first axis, got the shape {given.shape}.")
    values, observed = observe(given, mask, given.shape)
    low_rank = _completed(values, observed)
    status = "ok" if observed.any() else "no data"
    if not finite(low_rank):
        low_rank, status = np.zeros(given.shape), "diverged"
    return Fit(low_rank, np.where(observed, values - low_rank, 0.0), None, status)


def init(config: Config, shape: tuple[int, ...]) -> WindowState:
    """An empty window; fails here, not in mid-stream, when the package is missing."""
    state = empty(config, shape)
    _package()
    return state


def step(state: WindowState, values: Any, mask: Any = None) -> tuple[WindowState, BaselineResult]:
    """Run the package on the window that ends with this slice."""
    window = push(state, values, mask)
    known = slice(len(window.values) - window.known, None)
    seen, blind = window.observed[known], window.observed[known].copy()
    blind[-1] = False
    prediction = _completed(window.values[known], blind)[-1] if state.count > 0 else None
    if prediction is not None and not finite(prediction):
        prediction = np.zeros(state.shape)
    zero = np.zeros(state.shape)
    if not seen[-1].any():
        held = zero.copy() if prediction is None else prediction.copy()
        return replace(window, last=held.copy()), BaselineResult(held, prediction, zero.copy(), zero, None, "no data")
    low_rank, status = _completed(window.values[known], seen)[-1], "ok"
    if not finite(low_rank):
        low_rank, status = zero.copy(), "diverged"
    outliers = np.where(seen[-1], window.values[-1] - low_rank, 0.0)
    result = BaselineResult(low_rank, prediction, outliers, np.abs(outliers), None, status)
    return replace(window, last=low_rank.copy()), result


def _completed(values: Array, observed: Mask) -> Array:
    """The package's explanation of every slice."""
    rows = np.where(observed, values, np.nan).reshape(len(values), -1)
    try:
        found = _package().CAFE().run(rows)
        explained = np.asarray(found.imputed) - np.asarray(found.decompose()["residual"])
    except np.linalg.LinAlgError:  # a table that it cannot solve
        explained = np.full(rows.shape, np.nan)
    return np.array(explained, dtype=np.float64).reshape(values.shape)


def _package() -> ModuleType:
    try:
        import cafe
    except ImportError as error:
        raise ImportError('This method needs the package cafe-impute: pip install "undertow[compare]"') from error
    module: ModuleType = cafe
    return module


BASELINES = (
    Baseline(
        "cafe",
        "CAFÉ",
        init,
        step,
        Config,
        "D. Snow, M. Lyberg, E. Asodekar, Python package cafe-impute, 2026",
        batch=True,
        robust=True,
        requires="cafe",
        fit=fit,
        causal=True,
        most_entries=MOST_ENTRIES,
        hindsight=({"scale": SCALES},),
    ),
)
