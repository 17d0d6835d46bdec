"""Symmetric R × R matrices as rows of their P = R(R+1)/2 upper entries: half the work in every matrix product."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.defaults import LEAST_DIRECTION_SQUARINGS
from undertow.model.linalg.elimination import eliminated


def pack(matrices: Array) -> Array:
    """(..., R, R) → (..., P)."""
    size = matrices.shape[-1]
    return _at(matrices.reshape(*matrices.shape[:-2], size * size), _upper(size))


def unpack(packed: Array) -> Array:
    """(..., P) → (..., R, R)."""
    return _at(packed, _positions(packed.shape[-1]))


def outer(vectors: Array) -> Array:
    """Packed vvᵀ of the last axis: (..., R) → (..., P)."""
    return pack(vectors[..., :, None] * vectors[..., None, :])


def diagonal(matrices: Array) -> Array:
    """(..., R, R) → (..., R)."""
    size = matrices.shape[-1]
    return matrices.reshape(*matrices.shape[:-2], size * size)[..., :: size + 1]


def multiplicity(size: int) -> Array:
    """How often a packed entry occurs in the matrix: 1 on the diagonal, 2 off it (P,)."""
    rows, columns = np.triu_indices(size)
    return jnp.asarray(np.where(rows == columns, 1, 2))


def inverse(matrices: Array) -> tuple[Array, Array]:
    """Inverses of symmetric positive definite matrices (rows, R, R), and which could be inverted (rows,).

    By elimination; diagonals should be about 1.
    """
    result, pivots = eliminated(matrices)
    result = (result + jnp.swapaxes(result, -1, -2)) / 2
    return result, (pivots > 0).all(axis=-1) & jnp.isfinite(result).all(axis=(-2, -1))


def log_determinant(matrices: Array) -> Array:
    """ln |det| of symmetric matrices (rows, R, R) → (rows,)."""
    scale = 1 / jnp.sqrt(diagonal(matrices))
    _, pivots = eliminated(matrices * scale[:, :, None] * scale[:, None, :])
    return jnp.log(jnp.abs(pivots)).sum(axis=-1) - 2 * jnp.log(scale).sum(axis=-1)


def least_direction(matrix: Array) -> Array:
    """The eigenvector of the smallest eigenvalue of a positive semidefinite R × R matrix (R,), of length 1.

    Inverse iteration, 2ᵏ times by squaring k times: where eigenvalues are so close that it has not converged, the
    quotient vᵀMv is that of the smallest all the same, to a few parts in a thousand. Not by LAPACK: see elimination.py.
    """
    size = matrix.shape[0]
    eye = np.eye(size, dtype=matrix.dtype)
    tiny, resolution = float(np.finfo(matrix.dtype).tiny), 32 * float(np.finfo(matrix.dtype).eps)
    scaled = matrix / jnp.maximum(jnp.trace(matrix), tiny) + resolution * eye

    def squared(_: int, power: Array) -> Array:
        power = power / jnp.trace(power)
        return jnp.matmul(power, power, precision=lax.Precision.HIGHEST)

    power = lax.fori_loop(0, LEAST_DIRECTION_SQUARINGS, squared, eliminated(scaled[None])[0][0])
    column = power[:, jnp.argmax(jnp.diagonal(power))]
    direction: Array = column * lax.rsqrt(column @ column)
    return direction


def _at(array: Array, positions: np.ndarray) -> Array:
    """array[..., positions], all of which there are: without the checks that JAX would make of them."""
    found: Array = array.at[..., positions].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return found


def _upper(size: int) -> np.ndarray:
    """Where the packed entries are in a flat R × R matrix."""
    rows, columns = np.triu_indices(size)
    return (rows * size + columns).astype(np.int32)


def _positions(length: int) -> np.ndarray:
    """Where each entry of the R × R matrix sits in its packed row."""
    size = (int(np.sqrt(8 * length + 1)) - 1) // 2
    table = np.empty((size, size), dtype=np.int32)
    rows, columns = np.triu_indices(size)
    table[rows, columns] = table[columns, rows] = np.arange(length)
    return table
