"""The whole ELBO of a state."""

import jax.numpy as jnp

from undertow.model import elbo
from undertow.model.factors import predict
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import contaminated, gaussian_gamma, updates
from undertow.model.noise.mixture import energies

MODELS = {"default": contaminated, "paper": gaussian_gamma}


def bound(settings, core):
    """Of a state."""
    return elbo.total(settings, core.window, core.factors, core.outliers, *left(core), core.level)


def left(core):
    """y − m̄ − x̄ and Var x + Var m of the window."""
    residual = core.window.values - predict.low_rank(core.factors) - mean_of(core.level)
    return residual, predict.variance(core.factors) + variance_of(core.level)


def slice_sums(state, window, square):
    """Sums of contaminated noise over the entries of every slice, by ρ as it is."""
    energy = jnp.stack([energies(state, mask, one) for mask, one in zip(window.mask, square, strict=True)])
    axes, probability = tuple(range(1, energy.ndim)), state.probability
    return updates.SliceSums(
        window.mask.sum(axes, dtype=energy.dtype),
        probability.sum(axes),
        (probability * energy).sum(axes),
        ((1 - probability) * energy).sum(axes),
    )
