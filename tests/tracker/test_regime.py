"""Whether a stream has become another one: found where the growth of changes with size changes, and nowhere else."""

import numpy as np
import pytest

from undertow.inputs.dense import as_slice
from undertow.tracker.frame import Frame, choose
from undertow.tracker.recent import BEGINNING, RECENT, next_frames, remembered
from undertow.tracker.regime import changed, exponents_apart
from undertow.tracker.scales import LINEAR, LOG, ROOT

SHAPE = (12, 12)
SIZES = np.exp(np.random.default_rng(0).uniform(np.log(3), np.log(300), SHAPE))


def linear(rng):
    return SIZES + 2 * rng.normal(size=SHAPE)


def poisson(rng):
    return rng.poisson(SIZES).astype(float)


def lognormal(rng):
    return SIZES * np.exp(0.3 * rng.normal(size=SHAPE))


def signed(rng):
    return SIZES * rng.normal(size=SHAPE)


def slices(kind, count, seed, observed=0.7, factor=1.0):
    rng = np.random.default_rng(seed)
    return [as_slice(np.where(rng.random(SHAPE) < observed, factor * kind(rng), np.nan)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pair", [(linear, lognormal, 2), (poisson, lognormal, 1), (linear, poisson, 1)])
def test_another_growth_is_found_with_its_difference(pair, seed):
    before, after, apart = pair
    older, newer = slices(before, 15, seed), slices(after, BEGINNING, seed + 10)
    difference, error = exponents_apart(older, newer)
    assert abs(difference - apart) < 4 * error < 1.2
    assert changed(older, newer)
    assert changed(slices(after, 15, seed), slices(before, BEGINNING, seed + 10))


@pytest.mark.parametrize("kind", [linear, poisson, lognormal, signed])
def test_the_same_growth_is_no_change(kind):
    assert not any(changed(slices(kind, 15, seed), slices(kind, BEGINNING, seed + 100)) for seed in range(20))


@pytest.mark.parametrize("kind", [linear, poisson, lognormal, signed])
def test_louder_is_no_change(kind):
    assert not changed(slices(kind, 15, 1), slices(kind, BEGINNING, 2, factor=3))


def test_the_unit_does_not_matter():
    pairs = [
        (slices(linear, 15, 3, factor=unit), slices(lognormal, BEGINNING, 4, factor=unit)) for unit in (1, 2.0**40)
    ]
    one, other = (exponents_apart(*pair) for pair in pairs)
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_too_little_says_nothing():
    assert not changed([], slices(linear, 5, 0))
    nothing, few = [as_slice(np.zeros(SHAPE))] * 15, slices(linear, 5, 0, observed=0.02)
    assert exponents_apart(nothing, slices(linear, 5, 0)) == (0.0, np.inf)
    assert exponents_apart(slices(linear, 15, 1), few) == (0.0, np.inf)


@pytest.mark.parametrize("at", [41, 43, 45, 110])
def test_the_frame_is_reviewed_soon_after_a_change_whenever_it_comes(at):
    recent, used, frame, reviewed = (), 0, None, []
    for number, given in enumerate(slices(lognormal, at, 5) + slices(linear, 30, 6)):
        recent, used = remembered(recent, given, used)
        frames = next_frames(frame, recent, used)
        reviewed += [number] if frames else []
        frame = frames[0] if frames else frame
    first = next(number for number in reviewed if number >= at)
    assert at <= first < at + 2 * BEGINNING
    assert frame.scale == 0
    assert len(recent) == RECENT


def test_after_a_change_the_scale_before_it_has_no_advantage():
    """Changes whose growth lies between the limits of entering and of leaving the linear scale."""

    def between(rng):
        return SIZES + 0.5 * SIZES**0.225 * rng.normal(size=SHAPE)

    given = slices(between, BEGINNING, 8)
    exponent_suggests = choose(given).scale
    for scale in (LINEAR, ROOT, LOG):
        assert next_frames(Frame(0.0, 30.0, scale), tuple(given), BEGINNING)[0].scale == exponent_suggests
    assert exponent_suggests == LINEAR


def test_a_stream_that_goes_on_is_reviewed_as_rarely_as_before():
    recent, used, frame, reviewed = (), 0, None, []
    for given in slices(poisson, 170, 7):
        recent, used = remembered(recent, given, used)
        frames = next_frames(frame, recent, used)
        reviewed += [used] if frames else []
        frame = frames[0] if frames else frame
    assert reviewed == [1, 2, 3, 5, 10, 20, 40, 80, 160]
