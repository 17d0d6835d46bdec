"""The paper's start of a step: every factor from an SVD of the window's unfolding, A⁽ⁿ⁾ = U Σ^½, covariances I."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model.factors.rows import with_axis
from undertow.model.flow import where
from undertow.model.settings import Settings
from undertow.model.types import Factors, Window


def svd_start(settings: Settings, factors: Factors, window: Window, time_weights: Array) -> Factors:
    """All components active, λ̄ = 1. Where an axis is shorter than `max_rank` the remaining columns are N(0, 1)."""
    size = factors.active.shape[0]
    dtype = window.values.dtype
    keys = jax.random.split(jax.random.PRNGKey(settings.seed), window.values.ndim)
    ones = jnp.ones(size, dtype)
    factors = replace(factors, active=jnp.ones(size, bool), precision_shape=ones, precision_rate=ones)
    for axis, key in enumerate(keys):
        columns = leading_columns(jnp.moveaxis(window.values, axis, 0), size)
        rows = columns.shape[0]
        padding = jax.random.normal(key, (rows, size), dtype)[:, columns.shape[1] :]
        mean = jnp.concatenate([columns, padding], axis=1)
        covariance = jnp.broadcast_to(jnp.eye(size, dtype=dtype), (rows, size, size))
        if axis == 0:
            mean = where(time_weights[:, None] > 0, mean, 0)
            covariance = where(time_weights[:, None, None] > 0, covariance, 0)
        factors = with_axis(factors, axis, mean, covariance)
    return factors


def leading_columns(unfolded: Array, most: int) -> Array:
    """U Σ^½ of the unfolding (rows, everything else), at most `most` columns, through its rows × rows Gram matrix."""
    matrix = unfolded.reshape(unfolded.shape[0], -1)
    gram = jnp.matmul(matrix, matrix.T, precision=lax.Precision.HIGHEST)
    values, vectors = jnp.linalg.eigh(gram)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    columns: Array = vectors * jnp.maximum(values, 0) ** 0.25
    return columns
