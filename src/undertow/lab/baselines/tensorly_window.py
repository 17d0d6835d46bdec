"""TensorLy's robust tensor PCA and masked CP, rerun from scratch on a sliding window; needs the package `tensorly`.

J. Kossaifi, Y. Panagakis, A. Anandkumar, M. Pantic, "TensorLy: tensor learning in Python", JMLR 20(26), 2019.

    robust_pca  min Σ_n ‖D_(n)‖_* · low_rank_weight + sparse_weight ‖E‖₁  subject to  X = D + E, missing entries free
                (D. Goldfarb, Z. Qin, "Robust low-rank tensor recovery", SIAM J. Matrix Anal. Appl. 35(1), 2014)
    masked_cp   CP by alternating least squares, missing entries replaced by the current fit in every iteration

The window is stacked with time first, and only slices that were seen are in it. The package does the work and sets the
speed; its settings are passed on with their defaults. Robust PCA starts from an absolute penalty, so it depends on the
unit of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

import numpy as np

from undertow.lab.baselines.baseline import SCALE_THEN_RANK, SCALES, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.validation import check_settings
from undertow.lab.baselines.window import WindowState, empty, push


@dataclass(frozen=True)
class Config:
    """Settings of the window and of TensorLy; apart from rank and window, TensorLy's defaults.

    kind             "robust_pca" or "masked_cp"
    rank             components of masked_cp
    window           slices rerun at every step
    iterations       at most
    low_rank_weight  of the nuclear norms in robust_pca
    sparse_weight    of ‖E‖₁ in robust_pca
    seed             of masked_cp's random start, taken where the rank exceeds an unfolding
    """

    kind: Literal["robust_pca", "masked_cp"] = "robust_pca"
    rank: int = 5
    window: int = 20
    iterations: int = 100
    low_rank_weight: float = 1.0
    sparse_weight: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank", "window", "iterations"), positive=("low_rank_weight", "sparse_weight"))


def init(config: Config, shape: tuple[int, ...]) -> WindowState:
    """An empty window; fails here, not in mid-stream, when the package is missing."""
    _tensorly()
    return empty(config, shape)


def step(state: WindowState, values: Any, mask: Any = None) -> tuple[WindowState, BaselineResult]:
    """Rerun on the window that ends with this slice."""
    config, window = state.config, push(state, values, mask)
    outliers: Array | None = np.zeros(state.shape) if config.kind == "robust_pca" else None
    rank = None if config.kind == "robust_pca" else config.rank
    low_rank, status = state.last.copy(), "no data"
    if window.observed[-1].any():
        try:
            low_rank, outliers = _rerun(config, window.values[-window.known :].copy(), window.observed[-window.known :])
        except np.linalg.LinAlgError:  # normal equations without a solution, as when the window is still short
            low_rank = np.full(state.shape, np.nan)
        status = "ok"
        if not np.isfinite(low_rank).all():
            low_rank, status = np.zeros(state.shape), "diverged"
    score = np.where(window.observed[-1], np.abs(window.values[-1] - low_rank), 0.0)
    result = BaselineResult(low_rank, state.prediction, outliers, score, rank, status)
    return replace(window, last=low_rank.copy()), result


def _rerun(config: Config, values: Array, observed: Mask) -> tuple[Array, Array | None]:
    """The newest slice and, from robust_pca, its sparse part."""
    tensorly = _tensorly()
    from tensorly import decomposition

    flags = observed.astype(np.float64)
    with tensorly.backend_context("numpy", local_threadsafe=True):
        if config.kind == "robust_pca":
            low_rank, sparse = decomposition.robust_pca(
                values,
                mask=flags,
                reg_J=config.low_rank_weight,
                reg_E=config.sparse_weight,
                n_iter_max=config.iterations,
                verbose=0,
            )
            return np.array(low_rank[-1]), np.where(observed[-1], sparse[-1], 0.0)
        # TensorLy's start by singular vectors fails where an unfolding has fewer of them than components.
        smallest = min(min(size, values.size // size) for size in values.shape)
        start = "svd" if config.rank <= smallest else "random"
        fitted = decomposition.parafac(
            values,
            config.rank,
            n_iter_max=config.iterations,
            init=start,
            mask=None if observed.all() else flags,
            random_state=config.seed,
        )
        return np.array(tensorly.cp_to_tensor(fitted)[-1]), None


def _tensorly() -> ModuleType:
    try:
        import tensorly
    except ImportError as error:
        raise ImportError('This method needs the package tensorly: pip install "undertow[compare]"') from error
    module: ModuleType = tensorly
    return module


_TENSORLY: dict[str, Any] = {
    "citation": "J. Kossaifi et al., JMLR 20(26), 2019",
    "batch": True,
    "requires": "tensorly",
    "most_entries": 2_000,
}
BASELINES = (
    Baseline(
        "tensorly_robust_pca",
        "TensorLy robust PCA",
        init,
        step,
        Config,
        robust=True,
        defaults={"kind": "robust_pca"},
        hindsight=({"scale": SCALES}, {"sparse_weight": (0.1, 0.3)}),
        **_TENSORLY,
    ),
    Baseline(
        "tensorly_masked_cp",
        "TensorLy masked CP",
        init,
        step,
        Config,
        needs_unit_scale=False,
        defaults={"kind": "masked_cp"},
        hindsight=(*SCALE_THEN_RANK, {"window": (10,)}),
        **_TENSORLY,
    ),
)
