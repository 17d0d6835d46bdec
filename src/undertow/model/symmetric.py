"""Symmetric R × R matrices as rows of their P = R(R+1)/2 upper entries: half the work in every matrix product."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

SMALL = 16
"""Up to this size all matrices are eliminated together, one column after another: libraries take them one by one."""


def pack(matrices: Array) -> Array:
    """(..., R, R) → (..., P)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def unpack(packed: Array) -> Array:
    """(..., P) → (..., R, R)."""
    return packed[..., _positions(packed.shape[-1])]


def outer(vectors: Array) -> Array:
    """Packed vvᵀ of the last axis: (..., R) → (..., P)."""
    rows, columns = np.triu_indices(vectors.shape[-1])
    return vectors[..., rows] * vectors[..., columns]


def multiplicity(size: int) -> Array:
    """How often a packed entry occurs in the matrix: 1 on the diagonal, 2 off it (P,)."""
    rows, columns = np.triu_indices(size)
    return jnp.asarray(np.where(rows == columns, 1, 2))


def inverse(matrices: Array) -> tuple[Array, Array]:
    """Inverses of symmetric positive definite matrices (rows, R, R), and which could be inverted (rows,).

    Small ones by Gauss–Jordan elimination, larger ones through their Cholesky factors. Diagonals should be about 1.
    """
    if matrices.shape[-1] <= SMALL:
        result, pivots = _eliminated(matrices)
        result = (result + jnp.swapaxes(result, -1, -2)) / 2
        return result, (pivots > 0).all(axis=-1) & jnp.isfinite(result).all(axis=(-2, -1))
    lower = jnp.linalg.cholesky(matrices)
    eye = jnp.broadcast_to(jnp.eye(lower.shape[-1], dtype=lower.dtype), lower.shape)
    root = solve_triangular(lower, eye, lower=True)
    result = jnp.einsum("irk,irl->ikl", root, root, precision=lax.Precision.HIGHEST)
    return result, jnp.isfinite(result).all(axis=(-2, -1))


def log_determinant(matrices: Array) -> Array:
    """ln |det| of symmetric matrices (rows, R, R) → (rows,)."""
    if matrices.shape[-1] <= SMALL:
        scale = 1 / jnp.sqrt(jnp.diagonal(matrices, axis1=-2, axis2=-1))
        _, pivots = _eliminated(matrices * scale[:, :, None] * scale[:, None, :])
        return jnp.log(jnp.abs(pivots)).sum(axis=-1) - 2 * jnp.log(scale).sum(axis=-1)
    logarithms: Array = jnp.linalg.slogdet(matrices)[1]
    return logarithms


def _eliminated(matrices: Array) -> tuple[Array, Array]:
    """Inverses, and the pivots (rows, R) met on the way, whose product is the determinant."""
    size = matrices.shape[-1]
    places = jnp.arange(size)

    def turn(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        work, pivots = carry  # rows come last: every operation runs over all matrices at once
        here = places == step
        row, column = (lax.dynamic_index_in_dim(work, step, axis, keepdims=False) for axis in (0, 1))
        pivot = lax.dynamic_index_in_dim(row, step, 0, keepdims=False)
        row = jnp.where(here[:, None], 1, row) / pivot
        column = jnp.where(here[:, None], 0, column)
        work = jnp.where(here[None, :, None], 0, work) - column[:, None] * row
        return jnp.where(here[:, None, None], row, work), lax.dynamic_update_index_in_dim(pivots, pivot, step, 0)

    work = jnp.moveaxis(matrices, 0, -1)
    work, pivots = lax.fori_loop(0, size, turn, (work, work[0]))
    return jnp.moveaxis(work, -1, 0), pivots.T


def _positions(length: int) -> np.ndarray:
    """Where each entry of the R × R matrix sits in its packed row."""
    size = (int(np.sqrt(8 * length + 1)) - 1) // 2
    table = np.empty((size, size), dtype=np.int32)
    rows, columns = np.triu_indices(size)
    table[rows, columns] = table[columns, rows] = np.arange(length)
    return table
