"""The fit of a candidate component: what it adds to the ELBO, and what it finds."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import states
from bounds import bound

from undertow.model import elbo
from undertow.model.factors import predict
from undertow.model.noise import contaminated
from undertow.model.phases.candidate import CandidateFit, added

pytestmark = pytest.mark.usefixtures("double")


def fitted(settings, core):
    """The candidate for a state without components."""
    omega = core.window.slice_weights(settings.forgetting)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    count = omega @ core.window.mask.reshape(len(omega), -1).sum(1)
    fit = CandidateFit(weights, targets, (weights * targets**2).sum(), count, omega, settings.precision_prior)

    return jax.jit(fit.fitted)()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "length"),
    [pytest.param((12,), 6, marks=pytest.mark.full), ((8, 7), 4), pytest.param((5, 4, 3), 3, marks=pytest.mark.full)],
)
def test_a_candidate_adds_what_it_says_and_finds_what_is_there(shape, length):
    settings, core, signal = states.planted(shape, length)
    candidate = fitted(settings, core)
    assert int(added(core.factors, candidate, -1).active.sum()) == 0
    factors = added(core.factors, candidate, 1)
    assert int(factors.active.sum()) == 1
    np.testing.assert_allclose(predict.low_rank(factors), candidate.low_rank(), rtol=1e-9, atol=1e-12)
    variance = candidate.square() - candidate.low_rank() ** 2
    np.testing.assert_allclose(predict.variance(factors), variance, rtol=1e-6, atol=1e-9)
    omega = core.window.slice_weights(settings.forgetting)
    change = elbo.low_rank(factors, omega, settings.precision_prior) - elbo.low_rank(
        core.factors, omega, settings.precision_prior
    )
    np.testing.assert_allclose(candidate.elbo, change, rtol=1e-8)
    assert bound(settings, replace(core, factors=factors)) > bound(settings, core)
    found = np.asarray(predict.low_rank(factors))
    assert np.linalg.norm(found - signal) < 0.2 * np.linalg.norm(signal)
