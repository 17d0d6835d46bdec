"""SOFIA: CP of seasonal streams with missing entries and outliers; a forecast first, then a robust gradient step.

D. Lee, K. Shin, "Robust factorization of real-world tensor streams with patterns, missing values, and outliers",
ICDE 2021.

The first `cycles` periods of m slices are factorised together (`sofia_start`), and Holt-Winters smoothing is fitted to
the temporal rows (`holt_winters`). Then for every slice, ĉ the forecast of its temporal row and x̂ the slice it gives,

    r = y − x̂,  r̃ = σ ψ(r/σ)                            observed entries; ψ cuts at ±2 (Huber)
    σ² ← φ ρ(r/σ) σ² + (1−φ) σ²                         observed entries; ρ the biweight, k = 2, c = 2.52
    A⁽ⁿ⁾ ← A⁽ⁿ⁾ + μ clip(mttkrp_n(r̃) diag(ĉ))           clip: Frobenius norm at most μ√R
    c    = ĉ + μ clip(Σ r̃ Π a + λ₁ (c_{t−1} − ĉ) + λ₂ (c_{t−m} − ĉ))
    columns of A⁽ⁿ⁾ to length 1, their length into c; Holt-Winters moves on with c

The low-rank slice is Σ_r c_r a⁽¹⁾_r ∘ … ∘ a⁽ᴺ⁾_r, the outliers are y − x̂ − r̃. Cost O(Π I · R) a slice. While the first
cycles are gathered the status is "initialising".

Deviations from the published code: slices of any order. In its gradient of c the entries of the slice and of the
Khatri-Rao product run in opposite orders (rows fastest against columns fastest); here they belong together. The fit of
Holt-Winters takes quasi-Newton steps with exact gradients. Meant for seasonal data: without a season of known period it
has nothing to gain. Not equivariant to the unit: σ starts at 0.1, λ₃ and μ are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines import cp, holt_winters
from undertow.lab.baselines.baseline import SCALE_THEN_RANK, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.sofia_start import robust_start
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

_CUT, _BIWEIGHT = 2.0, 2.52  # k and c_k of the published code
_START_SCALE = 0.1


@dataclass(frozen=True)
class Config:
    """Settings of SOFIA; the defaults are the published ones, except the period, which belongs to the data.

    rank          R, components
    period        m, slices of a season
    cycles        seasons of the start, at least 2
    smoothness    λ₁, weight of the change from slice to slice
    seasonality   λ₂, weight of the change from season to season
    threshold     λ₃, soft threshold of the start
    step          μ, of the gradient steps
    scale_update  φ, of the error scale
    iterations    of the start, at most
    tolerance     of the start, relative change of x
    seed          of the random start
    """

    rank: int = 5
    period: int = 24
    cycles: int = 3
    smoothness: float = 0.001
    seasonality: float = 0.001
    threshold: float = 10.0
    step: float = 0.1
    scale_update: float = 0.01
    iterations: int = 300
    tolerance: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(
            self,
            integer=("rank", "period", "cycles", "iterations"),
            not_negative=("smoothness", "seasonality"),
            positive=("threshold", "step", "tolerance"),
            fraction=("scale_update",),
        )
        if self.cycles < 2:
            raise ValueError(f"cycles must be at least 2 for the season to be seen again, got {self.cycles}")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What SOFIA carries on.

    gathered, observed   the first slices, filled from the front, and their masks, (cycles · m, *shape)
    factors              A⁽ⁿ⁾ with columns of length 1, one (I_n, R) per mode
    rows                 temporal rows of the last period, oldest first, (m, R)
    level, trend         of Holt-Winters, (R,)
    season               of Holt-Winters, oldest first, (m, R)
    smoothing            α, β, γ of Holt-Winters, (3, R)
    scale                σ, shape
    count                slices seen, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    gathered: Array
    observed: Mask
    factors: tuple[Array, ...]
    rows: Array
    level: Array
    trend: Array
    season: Array
    smoothing: Array
    scale: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """An empty memory: the method starts once its first cycles are there."""
    sizes, rank, period = check_shape(shape), config.rank, config.period
    blank = (config.cycles * period, *sizes)
    return State(
        config,
        sizes,
        gathered=np.zeros(blank),
        observed=np.zeros(blank, dtype=bool),
        factors=tuple(np.zeros((size, rank)) for size in sizes),
        rows=np.zeros((period, rank)),
        level=np.zeros(rank),
        trend=np.zeros(rank),
        season=np.zeros((period, rank)),
        smoothing=np.zeros((3, rank)),
        scale=np.full(sizes, _START_SCALE),
        count=np.zeros(()),
    )


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Gather, start, or learn from one slice; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    config, seen = state.config, int(state.count)
    if seen < len(state.gathered):
        return _gather(state, slice_values, observed, seen)
    with jax.enable_x64(True):
        memory = (state.factors, state.rows, state.level, state.trend, state.season, state.smoothing, state.scale)
        settings = np.array([config.smoothness, config.seasonality, config.step, config.scale_update])
        learned = _learn(slice_values, observed.astype(np.float64), memory, settings)
        new_memory, low_rank, prediction, outliers, score = jax.tree.map(np.array, learned)
    if not finite(new_memory, low_rank):
        zero = np.zeros(state.shape)
        held = prediction if finite(prediction) else None
        return state, BaselineResult(zero, held, zero.copy(), np.abs(slice_values), config.rank, "diverged")
    status = "ok" if observed.any() else "no data"
    new = State(config, state.shape, state.gathered, state.observed, *(*new_memory, state.count + 1))
    return new, BaselineResult(low_rank, prediction, outliers, score, config.rank, status)


def _gather(state: State, values: Array, observed: Mask, seen: int) -> tuple[State, BaselineResult]:
    config = state.config
    gathered, masks = state.gathered.copy(), state.observed.copy()
    gathered[seen], masks[seen] = values, observed
    memory: tuple[Any, ...] = (
        state.factors, state.rows, state.level, state.trend, state.season, state.smoothing, state.scale
    )  # fmt: skip
    zero = np.zeros(state.shape)
    filled = np.where(observed, values, values.sum() / max(int(observed.sum()), 1))  # gaps at the mean of the rest
    result = BaselineResult(filled, None, zero, zero.copy(), None, "initialising")
    if seen + 1 == len(gathered):
        memory, result = _started(config, gathered, masks, state.scale)
        if not finite(memory, result.low_rank):
            failed = BaselineResult(zero.copy(), None, zero, zero.copy(), None, "diverged")
            return init(config, state.shape), failed  # gather afresh: these slices cannot be factorised
    return State(config, state.shape, gathered, masks, *(*memory, state.count + 1)), result


def _started(config: Config, gathered: Array, masks: Mask, scale: Array) -> tuple[tuple[Any, ...], BaselineResult]:
    factors, rows, low_rank, outliers = robust_start(
        np.ascontiguousarray(np.moveaxis(gathered, 0, -1)),
        np.ascontiguousarray(np.moveaxis(masks, 0, -1)),
        config.rank,
        config.period,
        (config.smoothness, config.seasonality, config.threshold),
        (config.iterations, config.tolerance),
        config.seed,
    )
    memory = (factors, rows[-config.period :].copy(), *holt_winters.fit(rows, config.period), scale.copy())
    last = low_rank[..., -1].copy()
    score = np.where(masks[-1], np.abs(gathered[-1] - last), 0.0)
    return memory, BaselineResult(last, None, outliers[..., -1].copy(), score, config.rank, "ok")


@jax.jit
def _learn(values: jax.Array, mask: jax.Array, memory: tuple[Any, ...], settings: jax.Array) -> tuple[Any, ...]:
    factors, rows, level, trend, season, smoothing, scale = memory
    smoothness, seasonality, rate, scale_update = settings
    expected = holt_winters.forecast(level, trend, season)
    prediction = cp.compose(factors, expected)
    residual = values - prediction
    ratio = residual / scale
    cleaned = mask * jnp.clip(ratio, -_CUT, _CUT) * scale
    inside = 1 - (1 - jnp.minimum(jnp.abs(ratio) / _CUT, 1.0) ** 2) ** 3
    grown = scale * jnp.sqrt(scale_update * _BIWEIGHT * inside + 1 - scale_update)
    new_scale = jnp.where(mask > 0, grown, scale)

    largest = rate * jnp.sqrt(float(expected.shape[0]))

    def clipped(gradient: jax.Array) -> jax.Array:
        size = jnp.sqrt((gradient**2).sum())
        shortened: jax.Array = rate * gradient * jnp.minimum(1.0, largest / jnp.where(size > 0, size, 1.0))
        return shortened

    modes = range(len(factors))
    pull = (cp.contract(cleaned, factors, 0) * factors[0]).sum(0)
    pull = pull + smoothness * (rows[-1] - expected) + seasonality * (rows[0] - expected)
    moved = [factors[mode] + clipped(cp.contract(cleaned, factors, mode) * expected) for mode in modes]
    row = expected + clipped(pull)
    for mode in modes:
        length = jnp.sqrt((moved[mode] ** 2).sum(0))
        moved[mode] = moved[mode] / jnp.where(length > 0, length, 1.0)
        row = row * length
    new_memory = (
        tuple(moved),
        jnp.concatenate([rows[1:], row[None]]),
        *holt_winters.advance(row, level, trend, season, smoothing),
        smoothing,
        new_scale,
    )
    outliers = mask * residual - cleaned
    return new_memory, cp.compose(moved, row), prediction, outliers, mask * jnp.abs(ratio)


BASELINES = (
    Baseline(
        "sofia",
        "SOFIA",
        init,
        step,
        Config,
        "D. Lee, K. Shin, ICDE 2021",
        robust=True,
        hindsight=(*SCALE_THEN_RANK, {"threshold": (1.0, 10.0), "step": (0.01, 0.1)}),
    ),
)
