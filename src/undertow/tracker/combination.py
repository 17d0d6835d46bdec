"""One answer from several predictors: non-negative weights that sum to one.

The weights minimise the discounted squared error of the combined prediction, wᵀ E w with E = Σ μ^age e eᵀ, where e
holds what each predictor said about observed entries without having seen them. Since w may sit on any corner, the
answer is not worse than the best predictor for long.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

FORGETTING = np.array([0.6, 0.9, 0.98, 0.995], np.float32)
"""μ of the errors, per slice: from weights that follow immediately to weights that are steady."""
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


def simplex_weights(gram: Array, absent: Array | None = None, sizes: Array | None = None) -> Array:
    """argmin wᵀ E w over w ≥ 0, Σ w = 1 (K,).

    The minimum lies inside one face of the simplex, where it has a closed form: all faces are tried together.

    Args:
        gram: E (K, K).
        absent: Who has nothing to say and gets no weight (K,); not everybody.
        sizes: If given, a set of weights for each of several E, in which the errors of predictor k are `sizes[j, k]`
            times as large (J, K): in units of these errors all of them are one problem.
    """
    size = gram.shape[0]
    squares = jnp.diag(gram)
    own = jnp.sqrt(jnp.maximum(squares, 1e-12 * squares.max() + 1e-30))
    regular = gram / own / own[:, None] + RIDGE * jnp.eye(size)
    all_own = own[None] if sizes is None else own * sizes
    ones = all_own.min(1, keepdims=True) / all_own
    faces = _faces(size)
    solved = jnp.where(faces, _solved(regular, ones) * ones[:, :, None], 0)
    feasible = (solved >= 0).all(1) & faces.any(0)
    if absent is not None:
        feasible &= ~(faces & absent[:, None]).any(0)
    # The loss of a face is one over its sum.
    gain = solved.sum(1) * (1 + ALIKE * faces.sum(0))
    best = jnp.argmax(jnp.where(feasible, gain, -jnp.inf), axis=1)
    weights = jnp.take_along_axis(solved, best[:, None, None], axis=2)[:, :, 0]
    weights = weights / weights.sum(1, keepdims=True)
    chosen: Array = weights[0] if sizes is None else weights
    return chosen


def _solved(matrix: Array, right: Array) -> Array:
    """A⁻¹ b on every face, for right sides (J, K): (J, K, 2ᴷ), where rows of predictors outside a face mean nothing.

    Gauss–Jordan elimination of one predictor after the other, each time with and without it: what faces have in common
    is eliminated once. Not by LAPACK: calls of it for hundreds of matrices, in several programs at the same time, can
    wait for each other for ever.
    """
    wide = jnp.concatenate([matrix, right.T], axis=1)[:, :, None]  # (K, columns that are left, faces so far)
    for column in range(len(matrix)):
        row = wide[column, 1:] / wide[column, 0]
        others = wide[:, 1:] - wide[:, :1] * row
        with_it = jnp.concatenate([others[:column], row[None], others[column + 1 :]])
        wide = jnp.concatenate([wide[:, 1:], with_it], axis=2)
    return jnp.moveaxis(wide, 1, 0)


def _faces(size: int) -> np.ndarray:
    """Every set of predictors, in the order in which `_solved` has them (K, 2ᴷ); the first is the empty one."""
    faces: np.ndarray = (np.arange(2**size) >> np.arange(size)[:, None]) % 2 == 1
    return faces
