"""CP of one full tensor by alternating least squares: the start of Online-CP.

J. D. Carroll, J. J. Chang 1970; as in T. G. Kolda, B. W. Bader, "Tensor decompositions and applications", SIAM Review
51(3), 2009, figure 3.3: A⁽ⁿ⁾ ← mttkrp_n(X) · (∘_{k≠n} A⁽ᵏ⁾ᵀA⁽ᵏ⁾)⁻¹, columns scaled after each mode.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines import cp
from undertow.lab.baselines.baseline import Array


def cp_als(tensor: Array, rank: int, iterations: int, tolerance: float, seed: int) -> tuple[Array, ...]:
    """Factors of the tensor, the weights absorbed into the last mode.

    Starts from U(0, 1) and stops once the fit 1 − ‖X − X̂‖/‖X‖ moves by less than `tolerance`.
    """
    draw = np.random.default_rng(seed)
    factors = tuple(draw.uniform(size=(size, rank)) for size in tensor.shape)
    norm = float(np.linalg.norm(tensor))
    if norm == 0:
        return (*factors[:-1], np.zeros((tensor.shape[-1], rank)))
    weights, fit = np.ones(rank), 0.0
    with jax.enable_x64(True):
        for iteration in range(iterations):
            updated, new_weights, residual = _sweep(tensor, factors, iteration == 0)
            factors, weights = tuple(map(np.array, updated)), np.array(new_weights)
            last, fit = fit, 1 - float(residual) / norm
            if iteration > 0 and abs(fit - last) < tolerance:
                break
    return (*factors[:-1], factors[-1] * weights)


@jax.jit
def _sweep(
    tensor: jax.Array, factors: tuple[jax.Array, ...], first: jax.Array
) -> tuple[tuple[jax.Array, ...], jax.Array, jax.Array]:
    new = list(factors)
    weights = jnp.ones(factors[0].shape[1])
    for mode in range(tensor.ndim):
        gram = jnp.ones((weights.shape[0],) * 2)
        for other in range(tensor.ndim):
            if other != mode:
                gram = gram * (new[other].T @ new[other])
        # The pseudo-inverse, because components may coincide while the start is still rough.
        solved = cp.contract(tensor, new, mode) @ jnp.linalg.pinv(gram, hermitian=True)
        # Length in the first sweep, then only columns whose largest entry exceeds 1: keeps scales from running off.
        length = jnp.sqrt((solved**2).sum(0))
        weights = jnp.where(first, length, jnp.maximum(jnp.abs(solved).max(0), 1.0))
        new[mode] = solved / jnp.where(weights > 0, weights, 1.0)
    residual = jnp.linalg.norm((tensor - cp.compose(new, weights)).ravel())
    return tuple(new), weights, residual
