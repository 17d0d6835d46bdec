"""Error bars: how often they hold, and how far mean-field is from the true posterior."""

import numpy as np
import pytest

import undertow as ut
from undertow.lab import metrics
from undertow.lab.synthetic.streams import authors, drifting


def coverage(data, model, first=20):
    """How often hidden clean entries lie within the error bars, from some slice on."""
    covered = []
    for t, x in enumerate(data.values):
        result = model.update(x)
        hidden = ~data.mask[t] & ~data.outlier_mask[t]
        if t >= first and hidden.any():
            covered.append(metrics.coverage(data.complete[t], result.mean, result.std, where=hidden))
    return np.mean(covered)


@pytest.mark.slow
def test_hidden_clean_entries_of_small_slices_lie_within_the_error_bars():
    covered = []
    for seed in (0, 1, 2):
        data = drifting((6, 5), 2, slices=80, observed=0.7, drift=0.1, seed=seed)
        covered.append(coverage(data, ut.RobustCP(max_rank=3, window=4)))
    assert 0.92 <= np.mean(covered) <= 0.98


@pytest.mark.full
@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (lambda seed: drifting((20, 20), 3, slices=60, observed=0.5, drift=0.3, seed=seed), {"preset": "default"}),
        (lambda seed: authors((20, 20), 3, slices=60, observed=0.4, seed=seed), {"forgetting": 0.95}),
        (lambda seed: drifting((8, 7, 6), 2, slices=60, observed=0.4, drift=0.3, seed=seed), {"forgetting": 0.9}),
    ],
)
def test_hidden_clean_entries_lie_within_the_error_bars(make, settings):
    covered = [coverage(make(seed), ut.RobustCP(**{**settings}, max_rank=6, window=10)) for seed in (11, 12)]
    assert 0.93 <= np.mean(covered) <= 0.97


def gibbs(values, mask, rng, sweeps=6000, burn=1000):
    """Rank-one factorization y = c a + e with the same priors, sampled: λ ~ Ga(.1, .1), p(τ) ∝ 1/τ. Draws of c a."""
    slices, rows = values.shape
    a, c, lam, tau = rng.normal(size=rows), rng.normal(size=slices), 1.0, 1.0
    draws, noises = [], []
    for sweep in range(sweeps):
        precision = lam + tau * (mask * c[:, None] ** 2).sum(0)
        a = tau * (mask * values * c[:, None]).sum(0) / precision + rng.normal(size=rows) / np.sqrt(precision)
        precision = lam + tau * (mask * a**2).sum(1)
        c = tau * (mask * values * a).sum(1) / precision + rng.normal(size=slices) / np.sqrt(precision)
        lam = rng.gamma(0.1 + (rows + slices) / 2, 1 / (0.1 + (a @ a + c @ c) / 2))
        residual = ((mask * (values - np.outer(c, a))) ** 2).sum()
        tau = rng.gamma(mask.sum() / 2, 2 / residual)
        if sweep >= burn:
            draws.append(np.outer(c, a))
            noises.append(1 / tau)
    return np.array(draws), np.mean(noises)


@pytest.mark.full
def test_mean_field_against_a_sampler():
    """What mean-field allows: means within a fifth of a posterior deviation; the deviation of the low rank never wider
    than sampled, and at least 0.6 of it (rows count as independent); predictive deviations within 20 % (the sampler
    has no noise level per slice).
    """
    rng = np.random.default_rng(7)
    slices, rows = 8, 10
    truth = np.outer(rng.normal(size=slices), rng.normal(size=rows))
    mask = rng.random((slices, rows)) < 0.8
    values = truth + 0.2 * rng.normal(size=truth.shape)
    unit = np.median(np.abs(values[0][mask[0]]))  # the sampler's priors are in the stream's unit
    draws, noise = gibbs(values / unit, mask, rng)
    mean, deviation = draws.mean(0) * unit, draws.std(0) * unit
    model = ut.RobustCP(
        max_rank=1, window=slices, forgetting=1.0, noise="shared", outlier_rate=1e-9, tolerance=1e-6,
        max_iterations=500, dtype="float64",
    )  # fmt: skip
    model.partial_fit(np.where(mask, values, np.nan))
    found = [model.smoothed(lag) for lag in range(slices)][::-1]
    means = np.stack([one.mean for one in found])
    low_rank_std = np.stack([one.low_rank_std for one in found])
    std = np.stack([one.std for one in found])
    assert np.sqrt(np.mean(((means - mean) / deviation) ** 2)) < 0.2
    ratio = np.median(low_rank_std / deviation)
    assert 0.6 < ratio < 1.05
    np.testing.assert_allclose(std, np.sqrt(deviation**2 + noise * unit**2), rtol=0.2)
