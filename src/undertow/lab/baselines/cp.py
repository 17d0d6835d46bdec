"""The few contractions that every CP method is made of, for slices of any order.

A slice is x = Σ_r c_r a⁽¹⁾_r ∘ … ∘ a⁽ᴺ⁾_r with factors a⁽ⁿ⁾ (I_n × R) and the temporal row c (R). Sums over observed
entries are taken as dense contractions with the 0/1 mask: matrix products, no loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

LETTERS = "abcdefghijklmnopqrstuvwxy"


def squares(factor: jax.Array) -> jax.Array:
    """Rows vec(a aᵀ), shape (I, R²)."""
    return (factor[:, :, None] * factor[:, None, :]).reshape(factor.shape[0], -1)


def contract(tensor: jax.Array, matrices: Sequence[jax.Array], mode: int) -> jax.Array:
    """Σ over every mode but `mode` of tensor · Π_{k≠mode} matrices[k][i_k, p], shape (I_mode, P).

    With the factors it is the matricised tensor times Khatri-Rao product, with their squares all weighted Gram
    matrices of the rows of `mode` together. Cost O(Π I · P).
    """
    letters = LETTERS[: tensor.ndim]
    others = [k for k in range(tensor.ndim) if k != mode]
    if not others:
        return jnp.broadcast_to(tensor[:, None], (tensor.shape[0], matrices[0].shape[1]))
    terms = ",".join([letters] + [letters[k] + "z" for k in others])
    return jnp.einsum(f"{terms}->{letters[mode]}z", tensor, *[matrices[k] for k in others])


def khatri_rao(matrices: Sequence[jax.Array]) -> jax.Array:
    """Column-wise Kronecker product, the last matrix varying fastest, shape (Π I, R)."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = (product[:, None, :] * matrix[None, :, :]).reshape(-1, matrix.shape[1])
    return product


def compose(factors: Sequence[jax.Array], row: jax.Array) -> jax.Array:
    """Σ_r c_r a⁽¹⁾_r ∘ … ∘ a⁽ᴺ⁾_r, as one matrix product."""
    shape = tuple(factor.shape[0] for factor in factors)
    left = khatri_rao(factors[:-1]) if len(factors) > 1 else jnp.ones((1, row.shape[0]), row.dtype)
    return jnp.reshape((left * row) @ factors[-1].T, shape)


def solve_positive(matrices: jax.Array, targets: jax.Array) -> jax.Array:
    """x with M x = b for symmetric positive definite M (…, R, R) and b (…, R), by Cholesky; NaN where M is not."""
    root = jnp.linalg.cholesky(matrices)
    half = solve_triangular(root, targets[..., None], lower=True)
    return solve_triangular(root, half, lower=True, trans=1)[..., 0]


def temporal_row(values: jax.Array, mask: jax.Array, factors: Sequence[jax.Array], ridge: jax.Array) -> jax.Array:
    """argmin_c Σ_observed (y − Σ_r c_r Π a_r)² + ridge ‖c‖². Values are zero where unobserved. Cost O(Π I · R²)."""
    rank = factors[0].shape[1]
    powers = [squares(factor) for factor in factors]
    gram = (contract(mask, powers, 0) * powers[0]).sum(0).reshape(rank, rank)
    target = (contract(values, factors, 0) * factors[0]).sum(0)
    return solve_positive(gram + ridge * jnp.eye(rank, dtype=gram.dtype), target)
