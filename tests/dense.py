"""The naive dense version: every quantity of the model by loops over entries, straight from its definition.

Slow on purpose, with no trick shared with the real code. Window axes: 0 is time, n + 1 is mode n.
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln

from undertow.config import make_config
from undertow.model import level as levels
from undertow.model.types import Contaminated, Core, Factors, GaussianGamma, Window

PALETTE = [((5,), 2, 4), ((4, 3), 3, 3), ((3, 4, 2), 3, 2), ((2, 3, 2, 2), 2, 3), ((6,), 1, 1)]
"""(shape, components, window): few, because each compiles anew."""
CASES = pytest.mark.parametrize(
    ("shape", "size", "length"),
    [case if len(case[0]) == 3 else pytest.param(*case, marks=pytest.mark.full) for case in PALETTE],
)
"""Three modes always; one, two and four, and the smallest of all, in the full tier."""
WITH_VECTORS = pytest.mark.parametrize(
    ("shape", "size", "length"),
    [case if case in (PALETTE[0], PALETTE[2]) else pytest.param(*case, marks=pytest.mark.full) for case in PALETTE],
)
"""The same with vectors among the first: for operations that treat the last mode apart."""


def random_core(shape, size, length, preset, seed, filled=None, observed=0.7, dead=True, **changes):
    """A state in the middle of nowhere: no update has been made, so every update has something to do."""
    rng = np.random.default_rng(seed)
    changes = {"forgetting": 0.8, "dtype": "float64", **changes}
    settings = make_config(preset, max_rank=size, window=length, **changes).settings()
    filled = length if filled is None else filled
    newest = int(rng.integers(length)) if filled == length else filled - 1
    ages = np.mod(newest - np.arange(length), length)
    present = ages < filled
    along = present.reshape(-1, *[1] * len(shape))
    mask = (rng.random((length, *shape)) < observed) & along
    values = np.where(mask, rng.normal(size=mask.shape), 0)
    active = np.ones(size, bool)
    if dead and size > 1:
        active[int(rng.integers(size))] = False

    def rows(count, used):
        mean = rng.normal(size=(count, size)) * active * used[:, None]
        root = rng.normal(size=(count, size, size)) * 0.3
        both = active[:, None] & active[None, :]
        return mean, np.where(both & used[:, None, None], root @ root.transpose(0, 2, 1) + 0.1 * np.eye(size), 0)

    modes = [rows(count, np.ones(count, bool)) for count in shape]
    row_means, row_covariances = rows(length, present)
    factors = Factors(
        means=tuple(jnp.asarray(mean) for mean, _ in modes),
        covariances=tuple(jnp.asarray(covariance) for _, covariance in modes),
        row_means=jnp.asarray(row_means),
        row_covariances=jnp.asarray(row_covariances),
        active=jnp.asarray(active),
        precision_shape=jnp.asarray(rng.uniform(1, 3, size)),
        precision_rate=jnp.asarray(rng.uniform(1, 3, size)),
    )
    window = Window(
        jnp.asarray(values), jnp.asarray(mask), jnp.asarray(newest, jnp.int32), jnp.asarray(filled, jnp.int32)
    )
    if settings.outliers == "contaminated":
        outliers = Contaminated(
            probability=jnp.asarray(np.where(mask, rng.random(mask.shape), 0)),
            rate_a=jnp.asarray(rng.uniform(1, 3)),
            rate_b=jnp.asarray(rng.uniform(5, 9)),
            ratio=jnp.asarray(rng.uniform(30, 60)),
            slice_scale=jnp.asarray(rng.uniform(1, 3, length)),
            pool_shape=jnp.asarray(rng.uniform(2, 5)),
            pool_rate=jnp.asarray(rng.uniform(2, 5)),
            noise_shape=jnp.asarray(rng.uniform(5, 9, shape)),
            noise_rate=jnp.asarray(rng.uniform(2, 5, shape)),
        )
    else:
        outliers = GaussianGamma(
            sparse=jnp.asarray(np.where(mask, rng.normal(size=mask.shape) * 0.3, 0)),
            sparse_variance=jnp.asarray(rng.uniform(0.5, 1, shape)),
            gamma_shape=jnp.asarray(0.6),
            gamma_rate=jnp.asarray(rng.uniform(0.5, 1, shape)),
            noise_shape=jnp.asarray(3.0),
            noise_rate=jnp.asarray(2.0),
        )
    level = levels.init(length, shape, jnp.dtype("float64")) if settings.level else None
    return settings, Core(window, factors, outliers, level)


def entries(array):
    return itertools.product(*map(range, np.shape(array)))


def means_of(factors):
    return [np.asarray(factors.row_means), *map(np.asarray, factors.means)]


def covariances_of(factors):
    return [np.asarray(factors.row_covariances), *map(np.asarray, factors.covariances)]


def slice_weights(settings, window):
    length = window.values.shape[0]
    weights = np.zeros(length)
    for age in range(int(window.filled)):
        weights[(int(window.newest) - age) % length] = settings.forgetting**age
    return weights


def low_rank(factors):
    means = means_of(factors)
    result = np.zeros([mean.shape[0] for mean in means])
    for index in entries(result):
        result[index] = np.prod([mean[i] for mean, i in zip(means, index, strict=True)], axis=0).sum()
    return result


def variance(factors):
    """E[x²] − x̄², as printed; fine in float64 on small numbers."""
    means, covariances = means_of(factors), covariances_of(factors)
    result = low_rank(factors)
    for index in entries(result):
        moment = 1.0
        for mean, covariance, i in zip(means, covariances, index, strict=True):
            moment = moment * (np.outer(mean[i], mean[i]) + covariance[i])
        result[index] = np.sum(moment) - result[index] ** 2
    return result


def updated_rows(factors, weights, targets, row_weights, axis):
    """Means and covariances of the rows of one axis, inactive components at 0."""
    means, covariances = means_of(factors), covariances_of(factors)
    active = np.flatnonzero(np.asarray(factors.active))
    precision = np.asarray(factors.precision_shape / factors.precision_rate)
    new_mean, new_covariance = np.zeros_like(means[axis]), np.zeros_like(covariances[axis])
    for i in range(means[axis].shape[0]):
        if row_weights[i] == 0:
            continue
        matrix, vector = np.diag(precision[active]), np.zeros(len(active))
        for index in entries(weights):
            if index[axis] != i:
                continue
            moment, product = 1.0, 1.0
            for other, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
                if other != axis:
                    row = mean[index[other]][active]
                    moment = moment * (np.outer(row, row) + covariance[index[other]][np.ix_(active, active)])
                    product = product * row
            matrix = matrix + weights[index] * moment / row_weights[i]
            vector = vector + weights[index] * targets[index] * product / row_weights[i]
        own_variance = np.linalg.inv(matrix)
        new_covariance[i][np.ix_(active, active)] = own_variance
        new_mean[i][active] = own_variance @ vector
    return new_mean, new_covariance


def gamma_gap(shape, rate, prior_shape, prior_rate):
    """KL of two Gamma laws."""
    return (
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * (np.log(rate) - np.log(prior_rate))
        + shape * (prior_rate - rate) / rate
    )


def low_rank_elbo(factors, row_weights, prior):
    """Rows and precisions of the active components."""
    active = np.flatnonzero(np.asarray(factors.active))
    shape, rate = np.asarray(factors.precision_shape), np.asarray(factors.precision_rate)
    total = -sum(gamma_gap(shape[r], rate[r], prior, prior) for r in active)
    for axis, (mean, covariance) in enumerate(zip(means_of(factors), covariances_of(factors), strict=True)):
        for i in range(mean.shape[0]):
            counts = row_weights[i] if axis == 0 else 1.0
            if counts == 0:
                continue
            own_variance = covariance[i][np.ix_(active, active)]
            entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * own_variance)[1]
            prior = sum(
                0.5 * (digamma(shape[r]) - np.log(rate[r]))
                - 0.5 * np.log(2 * np.pi)
                - 0.5 * shape[r] / rate[r] * (mean[i, r] ** 2 + covariance[i, r, r])
                for r in active
            )
            total += counts * (entropy + prior)
    return total


def contaminated_elbo(settings, state, window, square):
    """Likelihood, indicators, π and τ of the default model."""
    weights = slice_weights(settings, window)
    s = {name: np.asarray(value) for name, value in vars(state).items()}
    both = digamma(s["rate_a"] + s["rate_b"])
    total = 0.0
    for index in entries(square):
        t, i = index[0], index[1:]
        if not window.mask[index] or weights[t] == 0:
            continue
        rho, tau = s["probability"][index], s["noise_shape"][i] / s["noise_rate"][i]
        log_tau = digamma(s["noise_shape"][i]) - np.log(s["noise_rate"][i])
        clean = 0.5 * (log_tau - np.log(2 * np.pi * s["slice_scale"][t]) - tau / s["slice_scale"][t] * square[index])
        outlying = 0.5 * (log_tau - np.log(2 * np.pi * s["ratio"]) - tau / s["ratio"] * square[index])
        term = (1 - rho) * (clean + digamma(s["rate_b"]) - both) + rho * (outlying + digamma(s["rate_a"]) - both)
        entropy = -sum(p * np.log(p) for p in (rho, 1 - rho) if p > 0)
        total += weights[t] * (term + entropy)
    total -= sum(weights[t] * 15 * (np.log(phi) + 1 / phi) for t, phi in enumerate(s["slice_scale"]))
    a0, b0 = (
        settings.outlier_rate * settings.outlier_rate_strength,
        (1 - settings.outlier_rate) * settings.outlier_rate_strength,
    )
    total -= betaln(a0, b0) - betaln(s["rate_a"], s["rate_b"])
    total -= (s["rate_a"] - a0) * (digamma(s["rate_a"]) - both) + (s["rate_b"] - b0) * (digamma(s["rate_b"]) - both)
    for i in entries(s["noise_shape"]):
        total -= gamma_gap(s["noise_shape"][i], s["noise_rate"][i], s["pool_shape"], s["pool_rate"])
    return total


def gaussian_gamma_elbo(settings, state, window, residual, own_variance):
    """Likelihood, S, γ and τ of the paper's model."""
    weights = slice_weights(settings, window)
    s = {name: np.asarray(value) for name, value in vars(state).items()}
    newest = int(window.newest)
    tau, log_tau = s["noise_shape"] / s["noise_rate"], digamma(s["noise_shape"]) - np.log(s["noise_rate"])
    total = -gamma_gap(s["noise_shape"], s["noise_rate"], 1e-6, 1e-6)
    for index in entries(residual):
        t, i = index[0], index[1:]
        if not window.mask[index] or weights[t] == 0:
            continue
        square = (residual[index] - s["sparse"][index]) ** 2 + own_variance[index]
        if t == newest:
            own = s["sparse"][index] ** 2 + s["sparse_variance"][i]
            square += s["sparse_variance"][i]
            total += 0.5 * (digamma(s["gamma_shape"]) - np.log(s["gamma_rate"][i]) - np.log(2 * np.pi))
            total -= 0.5 * s["gamma_shape"] / s["gamma_rate"][i] * own
            total += 0.5 * np.log(2 * np.pi * np.e * s["sparse_variance"][i])
            total -= gamma_gap(s["gamma_shape"], s["gamma_rate"][i], 1e-6, 1e-6)
        total += 0.5 * (log_tau + np.log(weights[t]) - np.log(2 * np.pi)) - 0.5 * tau * weights[t] * square
    return total
