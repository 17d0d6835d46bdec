"""The whole ELBO of a state."""

from undertow.model import elbo
from undertow.model.factors import predict
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import contaminated, gaussian_gamma

MODELS = {"default": contaminated, "paper": gaussian_gamma}


def bound(settings, core):
    """Of a state."""
    return elbo.total(settings, core.window, core.factors, core.outliers, *left(core), core.level)


def left(core):
    """y − m̄ − x̄ and Var x + Var m of the window."""
    residual = core.window.values - predict.low_rank(core.factors) - mean_of(core.level)
    return residual, predict.variance(core.factors) + variance_of(core.level)
