"""Additive Holt-Winters smoothing of several series together, fitted by least squares: SOFIA's model of time.

    forecast  ŷ = l + b + s(one period ago)
    l ← α (y − s(one period ago)) + (1−α)(l + b)
    b ← β (l − l_old) + (1−β) b
    s ← γ (y − l_old − b_old) + (1−γ) s(one period ago)

with 0 < β ≤ α < 1 and γ ≤ 1−α. All functions take rows of R series; the season holds the last m values, oldest first.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from undertow.lab.baselines.baseline import Array


def forecast(level: Any, trend: Any, season: Any) -> Any:
    """The next row, (R,)."""
    return level + trend + season[0]


def advance(row: Any, level: Any, trend: Any, season: Any, smoothing: Any) -> tuple[Any, Any, Any]:
    """Level, trend and season after the row was seen; smoothing holds α, β and γ, (3, R)."""
    alpha, beta, gamma = smoothing
    new_level = alpha * (row - season[0]) + (1 - alpha) * (level + trend)
    new_trend = beta * (new_level - level) + (1 - beta) * trend
    newest = gamma * (row - level - trend) + (1 - gamma) * season[0]
    return new_level, new_trend, jnp.concatenate([season[1:], newest[None]])


def fit(rows: Array, period: int) -> tuple[Array, Array, Array, Array]:
    """Level (R,), trend (R,), season (m, R) after the last of the rows (T, R), and the smoothing factors (3, R).

    Minimises the squared one-step errors over the smoothing factors and the initial level, trend and season. The bounds
    are built into the parameters (α = σ(u), β = α σ(v), γ = (1−α) σ(w)), and every series is scaled to unit standard
    deviation.
    """
    deviation = rows.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    scaled = rows / deviation
    level = scaled[::period].mean(axis=0)
    trend = (scaled[period : 2 * period] - scaled[:period]).mean(axis=0) / period
    season = scaled[:period] - level
    alpha = 0.5 / period
    fractions = np.array([alpha, 0.1, 0.05])
    fractions = np.repeat(np.log(fractions / (1 - fractions))[:, None], rows.shape[1], axis=1)
    start = np.concatenate([fractions, level[None], trend[None], season])
    with jax.enable_x64(True):

        def objective(flat: Array) -> tuple[float, Array]:
            value, slope = _error(flat.reshape(start.shape), scaled)
            return float(value), np.asarray(slope).ravel()

        solution = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
        smoothing, (level, trend, season), _ = jax.tree.map(np.array, _run(solution.x.reshape(start.shape), scaled))
    return level * deviation, trend * deviation, season * deviation, smoothing


@jax.jit
def _run(parameters: jax.Array, rows: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...], jax.Array]:
    alpha, second, third = jax.nn.sigmoid(parameters[:3])
    smoothing = jnp.stack([alpha, alpha * second, (1 - alpha) * third])

    def once(state: Any, row: jax.Array) -> tuple[Any, jax.Array]:
        level, trend, season = state
        return advance(row, level, trend, season, smoothing), row - forecast(level, trend, season)

    end, errors = jax.lax.scan(once, (parameters[3], parameters[4], parameters[5:]), rows)
    return smoothing, end, errors


@jax.jit
@jax.value_and_grad
def _error(parameters: jax.Array, rows: jax.Array) -> jax.Array:
    errors: jax.Array = _run(parameters, rows)[2]
    return jnp.sum(errors**2)
