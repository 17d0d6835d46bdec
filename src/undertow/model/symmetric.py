"""Symmetric R × R matrices as rows of their P = R(R+1)/2 upper entries: half the work in every matrix product."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array


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


def _positions(length: int) -> np.ndarray:
    """Where each entry of the R × R matrix sits in its packed row."""
    size = (int(np.sqrt(8 * length + 1)) - 1) // 2
    table = np.empty((size, size), dtype=np.int32)
    rows, columns = np.triu_indices(size)
    table[rows, columns] = table[columns, rows] = np.arange(length)
    return table
