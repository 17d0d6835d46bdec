"""The whole ELBO of a state."""

from undertow.model import elbo
from undertow.model.factors import predict
from undertow.model.noise import contaminated, gaussian_gamma

MODELS = {"default": contaminated, "paper": gaussian_gamma}


def bound(settings, core):
    """Of a state without a level."""
    residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
    return elbo.total(settings, core.window, core.factors, core.outliers, residual, variance)
