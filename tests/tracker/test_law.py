"""The law of innovations: its densities, its learning against plain expectation–maximisation on samples."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from undertow.tracker import law as module
from undertow.tracker.law import (
    BANDS,
    FARTHEST,
    MOST,
    NEAREST,
    RATE_A,
    RATE_B,
    SMALLEST_SCALE,
    SMALLEST_SPREAD,
    TAILS,
    Law,
    init,
    outlier_probability,
    rate,
    with_outliers,
    worth,
)

learned = jax.jit(module.learned)
improved = jax.jit(lambda law: jax.lax.fori_loop(0, 200, lambda _, one: module._improved(one), law))
probability_of = jax.jit(outlier_probability)
SLICES, ENTRIES = 120, 400


def law_with(scale=1.0, rate=0.02, chosen=2):
    each = np.ones(len(TAILS), np.float32)
    return Law(
        init().counts,
        each * scale,
        np.full((len(TAILS), BANDS), rate / BANDS, np.float32),
        jnp.int32(chosen),
        jnp.ones(()),
    )


def run(draw, slices=SLICES):
    law = init()
    for _ in range(slices):
        u = draw().astype(np.float32)
        law = learned(law, u, np.ones(u.shape, bool))
    return law


RATES = np.arange(1, BANDS + 1) / 200
EDGES = np.geomspace(NEAREST, FARTHEST, BANDS + 1)


def density_of_outliers(size, rates):
    """Per unit of |u| / s on either side, each band log-uniform."""
    band = np.clip(np.searchsorted(EDGES, size, side="right") - 1, 0, BANDS - 1)
    return np.where(size > NEAREST, rates[band] / (2 * np.maximum(size, NEAREST) * np.log(EDGES[1] / EDGES[0])), 0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0])
def test_densities_are_those_of_the_docstring(scale, double):
    u = np.array([-40.0, -2.0, 0.0, 0.5, 3.5, 1000.0, 1e5]) * scale
    for tail in map(float, TAILS):
        clean, bad = module._log_joint(*map(jnp.asarray, (tail, scale, RATES, u)))
        expected = np.log1p(-RATES.sum()) + stats.t(tail, scale=scale).logpdf(u)
        np.testing.assert_allclose(clean, expected, rtol=1e-6)
        np.testing.assert_allclose(np.exp(bad), density_of_outliers(np.abs(u) / scale, RATES) / scale, rtol=1e-6)


@pytest.mark.slow
def test_the_density_of_outliers_integrates_to_their_rate(double):
    def density(log_size):
        size = jnp.asarray(np.exp(log_size))
        return float(jnp.exp(module._log_joint(*map(jnp.asarray, (4.0, 1.0, RATES)), size)[1]) * size)

    one_side = sum(integrate.quad(density, *np.log(ends))[0] for ends in itertools.pairwise(EDGES))
    assert 2 * one_side == pytest.approx(RATES.sum(), rel=1e-6)


def test_probability_is_that_of_bayes():
    law, u = law_with(scale=2.0, rate=0.05), np.array([0.1, 5.0, 7.0, 20.0, 300.0], np.float32)
    clean = stats.t(TAILS[2], scale=2.0).pdf(u)
    bad = np.where(u / 2 > NEAREST, 1 / (2 * u * np.log(FARTHEST / NEAREST)), 0)
    expected = 0.05 * bad / (0.05 * bad + 0.95 * clean)
    np.testing.assert_allclose(probability_of(law, u), expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(probability_of(law, -u), probability_of(law, u))


def test_what_is_far_off_is_worth_the_less_the_farther():
    u = np.array([0.0, -5.9, 12.0, -60.0, 1e15, np.inf], np.float32)
    found = worth(law_with(scale=2.0, rate=0.05), u)
    np.testing.assert_allclose(found, [1, 1, 0.25, 0.01, 0, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_outliers_that_are_known_of_are_expected():
    for share in (0.05, 0.2):
        known = with_outliers(run(lambda: np.random.default_rng(0).normal(size=50), 20), 1000 * share)
        assert float(rate(known)) == pytest.approx(share, rel=0.5)


def test_probability_grows_with_size_and_is_never_nan():
    sizes = np.geomspace(1e-6, 1e12, 200).astype(np.float32)
    found = np.asarray(probability_of(init(), np.append(sizes, np.inf)))[:-1]
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-6).all()
    assert found[0] < 1e-6
    assert found[-1] > 0.99


def plain_em(u, tail):
    """Scale and rates by expectation–maximisation on the samples themselves."""
    scale, rates = 1.0, np.full(BANDS, RATE_A / RATE_B / BANDS)
    for _ in range(150):
        clean = (1 - rates.sum()) * stats.t._pdf(u / scale, tail) / scale
        size = np.abs(u) / scale
        bad = density_of_outliers(size, rates) / scale
        flagged = bad / (bad + clean)
        precision = (tail + 1) / (tail + (u / scale) ** 2)
        scale = max(np.sqrt(((1 - flagged) * precision * u**2).sum() / (1 - flagged).sum()), SMALLEST_SCALE)
        found = np.histogram(size, EDGES, weights=flagged)[0]
        rates = (found + RATE_A / BANDS) / (u.size + RATE_A + RATE_B)
        rates[0] = min(rates[0], rates[1:].sum())
        rates *= min(1, MOST / rates.sum())
    return scale, rates.sum()


@pytest.mark.parametrize("outliers", [0.0, 0.1])
@pytest.mark.parametrize("width", [1.0, 3.0])
def test_learning_from_the_histogram_is_that_from_samples(outliers, width):
    rng = np.random.default_rng(0)
    u = width * rng.standard_t(4, size=5000)
    u = np.where(rng.random(u.size) < outliers, u + rng.choice([-1, 1], u.size) * rng.uniform(50, 500, u.size), u)
    edges = module.EDGES.copy()
    edges[0], edges[-1] = 0, np.inf
    counts = np.histogram(np.abs(u), edges)[0].astype(np.float32)
    found = improved(Law(counts, *(getattr(init(), name) for name in ("scale", "rate", "chosen", "spread"))))
    for number in (1, 4):
        scale, rate = plain_em(u, float(TAILS[number]))
        assert float(found.scale[number]) == pytest.approx(scale, rel=0.02)
        assert float(found.rate[number].sum()) == pytest.approx(rate, abs=0.003)


@pytest.mark.slow
def test_the_histogram_counts_sizes_with_forgetting():
    law, u = init(), np.array([1e-9, 0.5, -0.5, 2.0, 1e9, 3.0], np.float32)
    observed = np.array([True, True, True, True, True, False])
    fresh = np.asarray(learned(law, u, observed).counts) - module.FORGETTING * np.asarray(law.counts)
    expected = np.histogram(np.clip(np.abs(u[:5]), module.LOW * 1.01, module.HIGH * 0.99), module.EDGES)[0]
    np.testing.assert_allclose(fresh, expected, atol=1e-4)
    unobserved = learned(law, u, np.zeros(6, bool))
    np.testing.assert_array_equal(unobserved.counts, law.counts)


DRAWS = {
    "normal": lambda rng: rng.normal(size=ENTRIES),
    "t3": lambda rng: rng.standard_t(3, size=ENTRIES),
    "narrow": lambda rng: 0.7 * rng.normal(size=ENTRIES),
    "wide": lambda rng: 20 * rng.normal(size=ENTRIES),
}


@pytest.fixture(scope="module")
def laws():
    rng = np.random.default_rng(1)
    return {name: run(lambda draw=draw: draw(rng)) for name, draw in DRAWS.items()}


@pytest.mark.parametrize("name", DRAWS)
def test_intervals_hold_95_per_cent(laws, name):
    rng = np.random.default_rng(2)
    u = np.concatenate([DRAWS[name](rng) for _ in range(50)])
    assert 0.94 < (np.abs(u) < 1.96 * float(laws[name].spread)).mean() < 0.96


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_not_contaminated_is_not_flagged(laws, name):
    rng = np.random.default_rng(3)
    u = np.concatenate([DRAWS[name](rng) for _ in range(50)]).astype(np.float32)
    assert (np.asarray(probability_of(laws[name], u)) > 0.5).mean() < 2e-3


def test_tails_are_told_apart(laws):
    assert TAILS[int(laws["normal"].chosen)] >= 10
    assert TAILS[int(laws["t3"].chosen)] in (2, 3, 4)


@pytest.mark.parametrize("fraction", [0.02, 0.15])
def test_contamination_is_found_and_does_not_widen_the_intervals(fraction):
    rng = np.random.default_rng(4)

    def draw(size=ENTRIES):
        planted = rng.random(size) < fraction
        return np.where(planted, rng.choice([-1, 1], size) * rng.uniform(10, 100, size), rng.normal(size=size)), planted

    law = run(lambda: draw()[0])
    u, planted = draw(20_000)
    found = np.asarray(probability_of(law, u.astype(np.float32))) > 0.5
    assert found[planted].mean() > 0.97
    assert found[~planted].mean() < 0.003
    assert float(module.rate(law)) == pytest.approx(fraction, abs=0.015)
    assert 0.94 < (np.abs(u[~planted]) < 1.96 * float(law.spread)).mean() < 0.96


def test_probabilities_are_right_on_average():
    """Of entries with p near 1/2, about half are outliers."""
    rng = np.random.default_rng(5)
    size, fraction = 200_000, 0.05

    def draw(size=ENTRIES):
        planted = rng.random(size) < fraction
        away = NEAREST * np.exp(rng.uniform(0, np.log(FARTHEST / NEAREST), size))
        return np.where(planted, away, rng.normal(size=size)), planted

    law = run(lambda: draw()[0])
    u, planted = draw(size)
    probability = np.asarray(probability_of(law, u.astype(np.float32)))
    assert probability.sum() == pytest.approx(planted.sum(), rel=0.05)
    sure = probability > 0.9
    assert planted[sure].mean() == pytest.approx(probability[sure].mean(), abs=0.03)


def test_innovations_that_are_all_0_leave_the_law_usable():
    law = run(lambda: np.zeros(ENTRIES))
    assert float(law.spread) == SMALLEST_SPREAD
    assert (np.asarray(law.scale) >= SMALLEST_SCALE).all()
    assert float(probability_of(law, jnp.asarray([1.0]))[0]) < 0.5


def test_order_and_sign_do_not_matter():
    u = np.random.default_rng(6).normal(size=ENTRIES).astype(np.float32)
    one, other = (learned(init(), values, np.ones(ENTRIES, bool)) for values in (u, -u[::-1]))
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-6)
    np.testing.assert_array_equal(one.counts, other.counts)
