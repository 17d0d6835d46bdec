"""One answer from several predictors: non-negative weights that sum to one.

The weights minimise the discounted squared error of the combined prediction, wᵀ E w with E = Σ μ^age e eᵀ, where e
holds what each predictor said about observed entries without having seen them. Since w may sit on any corner, the
answer is not worse than the best predictor for long.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

FORGETTING = 0.95
"""μ of the errors, per slice."""
RIDGE = 1e-4
"""Of the mean squared error: predictors that cannot be told apart share their weight."""


def discounted(gram: Array, errors: Array, importance: Array) -> Array:
    """E with one more slice.

    Args:
        gram: E (K, K).
        errors: (K, n).
        importance: Weight of every squared error (n,), 0 where nothing was observed.
    """
    return FORGETTING * gram + (errors * importance) @ errors.T


def simplex_weights(gram: Array) -> Array:
    """argmin wᵀ E w over w ≥ 0, Σ w = 1 (K,).

    The minimum lies inside one face of the simplex, where it has a closed form: all faces are tried together.
    """
    size = gram.shape[0]
    mean = jnp.trace(gram) / size
    regular = gram / jnp.maximum(mean, 1e-30) + RIDGE * jnp.eye(size)
    faces = jnp.asarray(_faces(size))
    inside = faces[:, :, None] & faces[:, None, :]
    blocks = jnp.where(inside, regular, 0) + jnp.eye(size) * ~faces[:, :, None]
    chosen = faces.astype(gram.dtype)[:, :, None]
    solved = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(blocks), True), chosen)[:, :, 0]
    total = solved.sum(1, keepdims=True)
    weights = solved / jnp.where(total > 0, total, 1)
    feasible = (weights >= 0).all(1) & (total[:, 0] > 0)
    loss = jnp.einsum("fk,kl,fl->f", weights, regular, weights)
    best: Array = weights[jnp.argmin(jnp.where(feasible, loss, jnp.inf))]
    return best


def _faces(size: int) -> np.ndarray:
    """Every set of predictors but the empty one."""
    return np.array(list(itertools.product([False, True], repeat=size))[1:])
