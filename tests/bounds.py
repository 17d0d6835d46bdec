"""The whole evidence lower bound of a state."""

from undertow.model.factors import predict, rank
from undertow.model.noise import contaminated, gaussian_gamma

MODELS = {"default": contaminated, "paper": gaussian_gamma}


def bound(model, settings, core):
    """The whole lower bound."""
    weights = core.window.slice_weights(settings.forgetting)
    residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
    own = model.elbo(settings, core.outliers, core.window, weights, residual, variance)
    return own + rank.elbo(core.factors, model.row_share(weights), settings.precision_prior)
