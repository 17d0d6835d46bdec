"""BRTF: Bayesian robust CP of a whole tensor by variational inference, rank pruned by shared precisions.

Q. Zhao, G. Zhou, L. Zhang, A. Cichocki, S.-I. Amari, "Bayesian robust tensor factorization for incomplete multiway
data", IEEE Transactions on Neural Networks and Learning Systems 27(4), 2016.

y = Σ_r ∘_n a⁽ⁿ⁾_r + e + noise on the observed entries, with a_r ~ N(0, 1/γ_r), e_i ~ N(0, 1/α_i), noise ~ N(0, 1/β) and
Gamma priors of shape and rate 1e-6. One iteration, in this order (bars are posterior means, V covariances of rows):

    V_i = (β Σ_Ω ⟨b bᵀ⟩ + diag γ)⁻¹,  ā_i = β V_i Σ_Ω b̄ (y − ē)     modes in order, time last; b = product of the others
    γ_r = (½ Σ I_n) / (½ Σ_n Σ_i (ā² + V_rr))
    β   = ½|Ω| / ½ Σ_Ω ((y − x̄ − ē)² + Var x + Var e)
    Var e = 1/(α + β),  ē = β Var e (y − x̄)
    α_i = (a₀ + ½) / (b₀ + ½(ē² + Var e));  after five iterations a₀, b₀ are refitted to the α by maximum likelihood
    a component is pruned once its power is at rounding level

The start: singular vectors times root singular values of every unfolding (missing entries at the mean), ē ~ N(0, 1),
all precisions 1. Cost of an iteration O(Π I · T · R²).

It is a batch method: `fit` takes the stacked stream. For the streaming contract `step` refits the last `window` slices
from scratch and reports the newest. Not equivariant to the unit of the data: the start of ē, α and β is 1.

Deviations. The published code decides on convergence by the change of the bound relative to the bound of the second
iteration, and that bound contains log(1e-200) for every missing entry and log Γ cut at log(1e300): both inflate it and
stop the iteration early. `stopping="published"` (default) inflates the reference in the same way, `"repaired"` uses the
bound itself. The random ē of the start is set to zero on missing entries, where in the published code it leaks into the
first β. Rank 0 is a status, not an exception.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np

from undertow.lab.baselines.baseline import SCALE_THEN_RANK, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.brtf_updates import Posterior, iterate
from undertow.lab.baselines.validation import check_settings, finite, observe
from undertow.lab.baselines.window import WindowState, empty, push


@dataclass(frozen=True)
class Config:
    """Settings of BRTF; the defaults are the published ones except rank (published: the largest mode) and
    window, which the published code does not have.

    rank              largest rank, pruned from there
    iterations        at most
    tolerance         relative change of the bound at which to stop
    outlier_variance  variance of ē at the start
    stopping          "published" or "repaired", see the module
    window            slices refitted by `step`
    seed              of the random start of ē
    """

    rank: int = 5
    iterations: int = 100
    tolerance: float = 1e-6
    outlier_variance: float = 1.0
    stopping: Literal["published", "repaired"] = "published"
    window: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank", "iterations", "window"), positive=("tolerance", "outlier_variance"))


@dataclass(frozen=True)
class Fit:
    """A fitted tensor of T slices.

    low_rank    x̄, (T, *shape)
    outliers    ē, zero where nothing was observed, (T, *shape)
    factors     posterior means, the modes of the slice first and time last, one (I_n, rank) each
    rank        components left
    noise       β, the noise precision
    iterations  done
    status      "ok", "no data", "rank 0" or "diverged"
    """

    low_rank: Array
    outliers: Array
    factors: tuple[Array, ...]
    rank: int
    noise: float
    iterations: int
    status: str


def fit(config: Config, tensor: Any, mask: Any = None) -> Fit:
    """Factorise the stacked stream (T, *shape) in one go."""
    given = np.asarray(tensor)
    if given.ndim < 2:
        raise ValueError(f"tensor must be slices stacked along the first axis, got the shape {given.shape}.")
    values, observed = observe(given, mask, given.shape)
    return _fit(config, values, observed, np.ones(given.shape[0]))


def init(config: Config, shape: tuple[int, ...]) -> WindowState:
    """An empty window."""
    return empty(config, shape)


def step(state: WindowState, values: Any, mask: Any = None) -> tuple[WindowState, BaselineResult]:
    """Refit the window that ends with this slice."""
    config, window = state.config, push(state, values, mask)
    present = (np.arange(config.window) >= config.window - window.known).astype(np.float64)
    fitted = _fit(config, window.values, window.observed, present)
    low_rank, outliers, status = fitted.low_rank[-1].copy(), fitted.outliers[-1].copy(), fitted.status
    if not window.observed[-1].any():
        # The temporal row of an unobserved slice is its prior mean, zero: the last slice is the better answer.
        low_rank, status = state.last.copy(), "no data"
    result = BaselineResult(low_rank, state.prediction, outliers, np.abs(outliers), fitted.rank, status)
    return replace(window, last=low_rank.copy()), result


def _fit(config: Config, values: Array, observed: Mask, present: Array) -> Fit:
    count = int(observed.sum())
    if count == 0:
        empty = tuple(np.zeros((size, 0)) for size in (*values.shape[1:], values.shape[0]))
        return Fit(np.zeros(values.shape), np.zeros(values.shape), empty, 0, 1.0, 0, "no data")
    tensor, mask = np.moveaxis(values, 0, -1), np.moveaxis(observed, 0, -1).astype(np.float64)
    draw = np.random.default_rng(config.seed)
    factors = _start(tensor, mask, present, config.rank, draw)
    # Newest slice first, so that slices which are not there yet draw last and change nothing.
    noise = np.moveaxis(draw.standard_normal(values.shape)[::-1], 0, -1)
    outliers = mask * np.sqrt(config.outlier_variance) * noise
    missing = float(mask[..., present > 0].size - count) if config.stopping == "published" else 0.0
    with jax.enable_x64(True):
        start = Posterior.start(factors, outliers, mask, config.outlier_variance)
        settings = np.array([config.iterations, config.tolerance, missing, config.stopping == "published"], dtype=float)
        posterior = jax.tree.map(np.array, iterate(start, tensor, mask, present, settings))
    low_rank = np.array(np.moveaxis(posterior.low_rank, -1, 0))
    sparse = np.array(np.moveaxis(posterior.outliers, -1, 0))
    active = posterior.active > 0
    status = "ok" if active.any() else "rank 0"
    if not finite(low_rank, sparse):
        low_rank, sparse, status = np.zeros(values.shape), np.zeros(values.shape), "diverged"
    return Fit(
        low_rank=low_rank,
        outliers=sparse,
        factors=tuple(factor[:, active] for factor in posterior.factors),
        rank=int(active.sum()),
        noise=float(posterior.noise),
        iterations=int(posterior.iteration),
        status=status,
    )


def _start(tensor: Array, mask: Array, present: Array, rank: int, draw: np.random.Generator) -> tuple[Array, ...]:
    """Leading singular vectors of every unfolding times the roots of their singular values."""
    mean = (tensor * mask).sum() / mask.sum()
    completed = np.where(mask > 0, tensor, mean) * present
    largest_value = np.abs(completed).max() or 1.0  # keeps the squares below within range
    factors = []
    for mode, size in enumerate(tensor.shape):
        unfolded = np.moveaxis(completed, mode, 0).reshape(size, -1) / largest_value
        squared, vectors = np.linalg.eigh(unfolded @ unfolded.T)
        leading = vectors[:, ::-1][:, :rank]
        largest = np.take_along_axis(leading, np.abs(leading).argmax(axis=0)[None], axis=0)
        leading = leading * np.where(largest < 0, -1.0, 1.0)  # LAPACK leaves the sign open
        leading = leading * np.sqrt(largest_value) * np.maximum(squared[::-1][:rank], 0.0) ** 0.25
        extra = draw.standard_normal((size, max(rank - size, 0)))
        factors.append(np.concatenate([leading, extra], axis=1))
    factors[-1] = factors[-1] * present[:, None]
    return tuple(factors)


_CITATION = "Q. Zhao et al., IEEE Trans. Neural Netw. Learn. Syst. 27(4), 2016"
BASELINES = (
    Baseline(
        "brtf",
        "BRTF",
        init,
        step,
        Config,
        _CITATION,
        batch=True,
        robust=True,
        fit=fit,
        hindsight=(*SCALE_THEN_RANK, {"stopping": ("repaired",)}),
    ),
)
