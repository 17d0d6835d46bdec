"""Covariance: exponentially weighted second moments of all entries, as low rank plus diagonal.

Σ = F Fᵀ + diag(d). Given the observed entries of a slice, the others follow by the Gaussian conditional mean
c + F a, a = A⁻¹ Fᵀ G (y − c), A = I + Fᵀ G F, G = diag(weights / d); and each observed entry follows from the
remaining ones in closed form, since its residual is (1 − h) times what it would be without it, h = g fᵀ A⁻¹ f.
How much of a variance is an entry's own (shrinkage) is what has predicted best lately, each entry left out in turn.
Several of them run side by side (M): moments about zero, about the mean or about the local level, of short and of
long memory. They are one program, mapped over its members. O(M · entries · r²).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model.linalg.symmetric import inverse, least_direction
from undertow.tracker.predictors.base import Given, Prediction

RANK = 24
"""r, directions that are kept."""
LARGE_SLICE, LARGE_RANK, LARGE_SHRINKAGE = 12_000, 8, 0.02
"""Entries from which on fewer are kept, and shrinkage is not chosen: trying all takes longer there than learning."""
SHRINKAGES = np.array([0.005, 0.02, 0.1, 0.3], np.float32)
"""Fractions of every entry's variance that are its own at least: the one that has predicted best lately counts."""
SHRINKAGE_MEMORY = 0.97
"""Forgetting of how well each of them has predicted."""
LEAST_WEIGHT = 2.0
"""Slices that must have been seen before anything is said."""
ZERO, MEAN, LEVEL = 0, 1, 2
"""What deviations are from."""


@register_dataclass
@dataclass(frozen=True)
class CovarianceState:
    """Discounted sums.

    Attributes:
        loadings: F √weight (n, r).
        squares: Σ μ^age of the squared deviations (n,), with the variance of what was not observed.
        mean: (n,).
        weight: Σ μ^age.
        losses: Squared errors with each of `SHRINKAGES`, of observed entries without themselves (S,).
    """

    loadings: Array
    squares: Array
    mean: Array
    weight: Array
    losses: Array


@register_dataclass
@dataclass(frozen=True)
class Covariance:
    """One exponentially weighted covariance.

    Attributes:
        forgetting: μ.
        about: What moments are taken about: `ZERO`, `MEAN` or `LEVEL`.
    """

    forgetting: Array
    about: Array

    def init(self, entries: int) -> CovarianceState:
        """Nothing known."""
        size = min(RANK if entries <= LARGE_SLICE else LARGE_RANK, entries)
        nothing = jnp.zeros(entries)
        return CovarianceState(jnp.zeros((entries, size)), nothing, nothing, jnp.zeros(()), jnp.zeros(len(SHRINKAGES)))

    def predict(self, state: CovarianceState, given: Given) -> Prediction:
        """Gaussian conditional mean and variance, of observed entries without themselves."""
        return _left_out(self._fitted(state, given, _shrinkage(state)), given)

    def learn(self, state: CovarianceState, given: Given) -> tuple[CovarianceState, Array]:
        """Add the slice, missing entries by their conditional mean and variance."""
        fitted, mu = self._fitted(state, given, _shrinkage(state)), self.forgetting
        known = given.weights > 0
        weight = jnp.where(known, given.weights, 0)
        full = weight * given.values + (1 - weight) * fitted.mean
        early = state.weight < LEAST_WEIGHT
        full = jnp.where(early & ~known, fitted.centre, full)
        deviation = full - fitted.centre
        share = 1 / (1 + mu * state.weight)
        counted = jnp.maximum(jnp.where(self.about == MEAN, mu * state.weight * share, 1.0), 1e-3)
        missing = jnp.where(early, 0, (1 - weight) * (fitted.variance + fitted.own))
        squares = mu * state.squares + counted * deviation**2 + missing
        wide = jnp.concatenate([jnp.sqrt(mu) * state.loadings, (jnp.sqrt(counted) * deviation)[:, None]], axis=1)
        after = CovarianceState(
            loadings=_compressed(wide, squares),
            squares=squares,
            mean=state.mean + share * (full - state.mean),
            weight=mu * state.weight + 1,
            losses=SHRINKAGE_MEMORY * state.losses + jnp.where(early, 0, self._losses(state, given)),
        )
        return after, fitted.mean

    def _losses(self, state: CovarianceState, given: Given) -> Array:
        """Of each of `SHRINKAGES`, relative to the smallest of this slice (S,); of large slices none is tried."""
        if given.values.size > LARGE_SLICE:
            return jnp.zeros_like(state.losses)

        def loss(shrinkage: Array) -> Array:
            made = _left_out(self._fitted(state, given, shrinkage), given)
            return (given.weights * (given.values - made.mean) ** 2).sum()

        each = jax.vmap(loss)(jnp.asarray(SHRINKAGES))
        return each / jnp.maximum(each.min(), 1e-30)

    def _fitted(self, state: CovarianceState, given: Given, shrinkage: Array) -> _Fitted:
        centre = jnp.select(
            [self.about == ZERO, self.about == MEAN], [jnp.zeros_like(given.level), state.mean], given.level
        )
        weight = jnp.maximum(state.weight, 1e-6)
        total = state.squares / weight
        loadings = state.loadings * jnp.sqrt((1 - shrinkage) / weight)
        own = jnp.maximum(total - (loadings**2).sum(1), shrinkage * total)
        own = own + 1e-3 * total + 1e-5 * total.mean() + 1e-12
        precision = given.weights / own
        gram = jnp.eye(loadings.shape[1]) + loadings.T @ (precision[:, None] * loadings)
        solution = inverse(gram[None])[0][0]
        coefficients = solution @ (loadings.T @ (precision * (given.values - centre)))
        variance = ((loadings @ solution) * loadings).sum(1)
        early = state.weight < LEAST_WEIGHT
        return _Fitted(
            mean=jnp.where(early, given.level, centre + loadings @ coefficients),
            variance=jnp.where(early, total + 1.0, variance),
            own=own,
            leverage=jnp.where(early, 0.0, variance * precision),
            centre=centre,
        )


@dataclass(frozen=True)
class _Fitted:
    mean: Array
    variance: Array
    own: Array
    leverage: Array
    centre: Array


def _left_out(fitted: _Fitted, given: Given) -> Prediction:
    """Of every entry; of an observed one without itself."""
    left = 1 - jnp.minimum(fitted.leverage, 0.9999)
    observed = given.weights > 0
    mean = jnp.where(observed, given.values - (given.values - fitted.mean) / left, fitted.mean)
    variance = jnp.where(observed, fitted.variance / left, fitted.variance)
    return Prediction(mean, variance, fitted.own)


def _shrinkage(state: CovarianceState) -> Array:
    """The one that has predicted best, the least where they are alike; of large slices always the same."""
    if state.mean.shape[-1] > LARGE_SLICE:
        return jnp.asarray(LARGE_SHRINKAGE, state.mean.dtype)
    return jnp.asarray(SHRINKAGES)[jnp.argmin(state.losses)]


def _compressed(wide: Array, squares: Array) -> Array:
    """`wide` (n, r + 1) without its least direction, every entry in units of its own deviation.

    Which r columns span the others is open, since only F Fᵀ counts: those of a Householder reflection, so that one
    eigenvector is enough.
    """
    scale = 1 / jnp.maximum(squares, 1e-3 * squares.mean() + 1e-30)
    least = least_direction(jnp.matmul(wide.T, scale[:, None] * wide, precision=lax.Precision.HIGHEST))
    mirror = least.at[-1].add(jnp.where(least[-1] < 0, -1, 1))
    kept: Array = wide[:, :-1] - (wide @ mirror)[:, None] * (2 / (mirror @ mirror) * mirror[:-1])
    return kept


class Covariances:
    """Several covariances as one: every array has one row for each of them (M, …).

    Args:
        **members: By name, (half-life in slices, what moments are taken about).
    """

    def __init__(self, **members: tuple[float, int]) -> None:
        half_lives, about = zip(*members.values(), strict=True)
        self.names = tuple(members)
        self.forgetting = 0.5 ** (1 / np.array(half_lives, np.float32))
        self.about = np.array(about, np.int32)

    def init(self, entries: int) -> CovarianceState:
        """Nothing known."""
        state: CovarianceState = jax.vmap(lambda one: one.init(entries))(self._members())
        return state

    def predict(self, state: CovarianceState, given: Given) -> Prediction:
        """Gaussian conditional mean and variance, of observed entries without themselves."""
        made: Prediction = jax.vmap(Covariance.predict, (0, 0, None))(self._members(), state, given)
        return made

    def learn(self, state: CovarianceState, given: Given) -> tuple[CovarianceState, Array]:
        """Add the slice, missing entries by their conditional mean and variance."""
        learned: tuple[CovarianceState, Array] = jax.vmap(Covariance.learn, (0, 0, None))(self._members(), state, given)
        return learned

    def _members(self) -> Covariance:
        return Covariance(jnp.asarray(self.forgetting), jnp.asarray(self.about))


def covariances() -> Covariances:
    """Those of the tracker."""
    return Covariances(
        covariance_20=(20, ZERO),
        covariance_100=(100, ZERO),
        centred_covariance=(20, MEAN),
        innovation_covariance=(20, LEVEL),
    )
