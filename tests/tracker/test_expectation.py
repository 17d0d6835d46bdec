"""What an observation is on average: how much of the theory the data bear out."""

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker import expectation, scales

pytestmark = pytest.mark.slow
LARGE = np.full(4000, 5.0)
"""Means on the scale of the stream, far from where it is linear."""


def after(values, z, variance, scale=scales.LOG, weights=None):
    importance = np.ones(len(values)) if weights is None else weights
    parts = (jnp.asarray(np.asarray(one, np.float32)) for one in (values, z, np.broadcast_to(variance, z.shape)))
    return expectation.learned(expectation.init(), *parts, scale, jnp.asarray(importance, jnp.float32))


def middle(known, scale=scales.LOG, variance=0.25, z=LARGE[:1]):
    return float(expectation.mean(known, jnp.asarray(z), jnp.asarray(variance), scale)[0])


@pytest.mark.parametrize("scale", [scales.ROOT, scales.LOG])
def test_where_noise_is_normal_means_add_up_to_what_was_observed(scale):
    noise = 0.5 * np.random.default_rng(0).normal(size=LARGE.size)
    x = np.asarray(scales.plain(jnp.asarray(LARGE + noise), scale))
    known = after(LARGE + noise, LARGE, 0.25, scale)
    assert middle(known, scale) == pytest.approx(x.mean(), rel=0.01)
    assert middle(known, scale) == pytest.approx(float(scales.expected(LARGE[:1], 0.25, scale)[0]), rel=0.02)


def test_noise_in_proportion_adds_up_over_entries_of_all_sizes():
    """Where the scale is linear, near 0, the same noise is a small one."""
    draw = np.random.default_rng(4)
    x = np.exp(1.4 * draw.normal(size=200)) * np.exp(0.5 * draw.normal(size=(500, 200)))
    z = np.asarray(scales.scaled(jnp.asarray(x), scales.LOG))
    centres, variance = z.mean(axis=0), jnp.asarray(z.var(axis=0))
    known = after(z.ravel(), np.tile(centres, 500), np.tile(variance, 500))
    found = np.asarray(expectation.mean(known, jnp.asarray(centres), variance, scales.LOG))
    assert found.sum() == pytest.approx(x.mean(axis=0).sum(), rel=0.01)


def test_of_variances_that_are_claimed_in_vain_nothing_is_believed():
    known = after(LARGE, LARGE, 0.25)
    assert middle(known) == pytest.approx(float(scales.plain(LARGE[:1], scales.LOG)[0]), rel=1e-5)


def test_before_anything_was_judged_means_are_medians():
    assert middle(expectation.init()) == pytest.approx(float(scales.plain(LARGE[:1], scales.LOG)[0]), rel=1e-5)


def test_what_is_far_off_moves_little():
    noise = 0.5 * np.random.default_rng(0).normal(size=LARGE.size)
    spoiled = LARGE + noise
    spoiled[:8] = 30.0  # e^25 times as large
    assert middle(after(spoiled, LARGE, 0.25)) == pytest.approx(middle(after(LARGE + noise, LARGE, 0.25)), rel=0.02)


def test_the_linear_scale_stays_as_it_is():
    known = after(LARGE - 6, LARGE, 0.25, scales.LINEAR)
    for z in (-2.0, 0.0, 3.0):
        assert middle(known, scales.LINEAR, z=np.array([z])) == pytest.approx(z)
    assert expectation.least(known, scales.LINEAR) == -np.inf


@pytest.mark.parametrize("scale", [scales.ROOT, scales.LOG])
def test_nothing_is_expected_below_zero_where_nothing_was(scale):
    low = np.array([-2.0])
    positive, both = after(LARGE, LARGE, 0.25, scale), after(-LARGE, LARGE, 0.25, scale)
    hidden = after(-LARGE, LARGE, 0.25, scale, weights=np.zeros(LARGE.size))
    assert middle(positive, scale, z=low) >= 0
    assert middle(both, scale, z=low) < 0
    assert [float(expectation.least(one, scale)) for one in (positive, both, hidden)] == [0, -np.inf, 0]
