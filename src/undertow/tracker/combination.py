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

FORGETTING = np.array([0.6, 0.9, 0.98, 0.995], np.float32)
"""μ of the errors, per slice: from weights that follow at once to weights that are steady."""
CHOICE_MEMORY = 0.95
"""Forgetting of how well each of these has done."""
EVIDENCE = 0.25
"""Power of its squared error by which each of them counts, per observed entry: as in a normal likelihood over the
slices that are remembered, in which forty entries say as much as one that is independent of all others."""
RIDGE = 1e-4
"""Of each predictor's own squared error: those that cannot be told apart share their weight, and one that explodes does
not make the others alike."""

ALIKE = 1e-4
"""Relative loss per predictor by which two sets of them must differ to be told apart: else the larger set counts, and
rounding decides nothing."""


def discounted(gram: Array, errors: Array, importance: Array) -> Array:
    """E with one more slice.

    Args:
        gram: E (F, K, K), one for each of `FORGETTING`.
        errors: (K, n).
        importance: Weight of every squared error (n,), 0 where nothing was observed.
    """
    return jnp.asarray(FORGETTING)[:, None, None] * gram + (errors * importance) @ errors.T


def averaged(weights: Array, errors: Array, entries: Array | float) -> Array:
    """One set of weights (K,) out of several (F, K), by how well each has done (F,) on n entries of a slice."""
    size = jnp.log(jnp.maximum(errors, 1e-6 * errors.max() + 1e-30))
    mean: Array = jax.nn.softmax(-EVIDENCE * entries * size) @ weights
    return mean


def simplex_weights(gram: Array, absent: Array | None = None) -> Array:
    """argmin wᵀ E w over w ≥ 0, Σ w = 1 (K,).

    The minimum lies inside one face of the simplex, where it has a closed form: all faces are tried together.

    Args:
        gram: E (K, K).
        absent: Who has nothing to say and gets no weight (K,); not everybody.
    """
    size = gram.shape[0]
    squares = jnp.diag(gram)
    own = jnp.sqrt(jnp.maximum(squares, 1e-12 * squares.max() + 1e-30))
    regular = gram / own / own[:, None] + RIDGE * jnp.eye(size)
    faces = jnp.asarray(_faces(size))
    inside = faces[:, :, None] & faces[:, None, :]
    blocks = jnp.where(inside, regular, 0) + jnp.eye(size) * ~faces[:, :, None]
    ones = jnp.where(faces, own.min() / own, 0)
    solved = _solved(blocks, ones) * ones
    feasible = (solved >= 0).all(1)
    if absent is not None:
        feasible &= ~(faces & absent).any(1)
    # The loss of a face is one over its sum.
    gain = solved.sum(1) * (1 + ALIKE * faces.sum(1))
    best: Array = solved[jnp.argmax(jnp.where(feasible, gain, -jnp.inf))]
    return best / best.sum()


def _solved(matrices: Array, right: Array) -> Array:
    """A⁻¹ b of many small positive definite matrices (F, K, K) and right sides (F, K), by elimination.

    Not by LAPACK: calls of it for hundreds of matrices, in several programs at once, can wait for each other for ever.
    """

    def eliminate(column: Array, wide: Array) -> Array:
        row = wide[:, column] / wide[:, column, column][:, None]
        wide = wide - wide[:, :, column][:, :, None] * row[:, None, :]
        return wide.at[:, column].set(row)

    wide = jnp.concatenate([matrices, right[:, :, None]], axis=2)
    solved: Array = jax.lax.fori_loop(0, matrices.shape[1], eliminate, wide)[:, :, -1]
    return solved


def _faces(size: int) -> np.ndarray:
    """Every set of predictors but the empty one."""
    return np.array(list(itertools.product([False, True], repeat=size))[1:])
