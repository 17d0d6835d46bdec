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

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import jax
import numpy as np

from undertow.lab.baselines.door import check_positive, check_shape, check_whole, observe
from undertow.lab.baselines.result import Array, BaselineResult, Mask


@dataclass(frozen=True)
class Config:
    """Knobs of the window and of TensorLy; apart from rank and window, TensorLy's defaults.

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
        if self.kind not in ("robust_pca", "masked_cp"):
            raise ValueError(f'kind must be "robust_pca" or "masked_cp", got {self.kind!r}.')
        check_whole(rank=self.rank, window=self.window, iterations=self.iterations)
        check_positive(low_rank_weight=self.low_rank_weight, sparse_weight=self.sparse_weight)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What is carried on: the window.

    values    the last slices, newest last, zeros where unobserved, (window, *shape)
    observed  their masks, (window, *shape)
    last      the last low-rank slice, shape
    count     slices seen, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    values: Array
    observed: Mask
    last: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """An empty window; fails here, not in mid-stream, when the package is missing."""
    _tensorly()
    sizes = check_shape(shape)
    room = (config.window, *sizes)
    return State(config, sizes, np.zeros(room), np.zeros(room, dtype=bool), np.zeros(sizes), np.zeros(()))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Rerun on the window that ends with this slice."""
    config = state.config
    slice_values, slice_observed = observe(values, mask, state.shape)
    window = np.concatenate([state.values[1:], slice_values[None]])
    observed = np.concatenate([state.observed[1:], slice_observed[None]])
    prediction = state.last.copy() if state.count > 0 else None
    outliers: Array | None = np.zeros(state.shape) if config.kind == "robust_pca" else None
    rank = None if config.kind == "robust_pca" else config.rank
    low_rank, status = state.last.copy(), "no data"
    if slice_observed.any():
        known = min(int(state.count) + 1, config.window)
        try:
            low_rank, outliers = _rerun(config, window[-known:].copy(), observed[-known:])
        except np.linalg.LinAlgError:  # normal equations without a solution, as when the window is still short
            low_rank = np.full(state.shape, np.nan)
        status = "ok"
        if not np.isfinite(low_rank).all():
            low_rank, status = np.zeros(state.shape), "diverged"
    score = np.where(slice_observed, np.abs(slice_values - low_rank), 0.0)
    new = State(config, state.shape, window, observed, low_rank.copy(), state.count + 1)
    return new, BaselineResult(low_rank, prediction, outliers, score, rank, status)


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
