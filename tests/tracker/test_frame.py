"""Origin, unit and scale: on generated data, on bad beginnings, and equivariant to unit and shift."""

import numpy as np
import pytest

from undertow.inputs.dense import as_slice
from undertow.tracker.frame import Frame, choose, misled, usual_slices
from undertow.tracker.scales import LINEAR, LOG, ROOT

SHAPE, SLICES = (8, 5), 12


def sizes(rng):
    """Of every entry, over two orders of magnitude."""
    return np.exp(rng.uniform(np.log(3), np.log(300), SHAPE))


def poisson(rng, slices=SLICES):
    size = sizes(rng)
    return [rng.poisson(size).astype(float) for _ in range(slices)]


def lognormal(rng, slices=SLICES):
    size = sizes(rng)
    return [size * np.exp(0.3 * rng.normal(size=SHAPE)) for _ in range(slices)]


def linear(rng, slices=SLICES):
    size = sizes(rng)
    return [size + 0.5 * rng.normal(size=SHAPE) for _ in range(slices)]


def signed(rng, slices=SLICES):
    return [rng.normal(size=SHAPE) for _ in range(slices)]


KINDS = {
    "linear": (linear, LINEAR),
    "poisson": (poisson, ROOT),
    "lognormal": (lognormal, LOG),
    "signed": (signed, LINEAR),
}
ALL = pytest.mark.parametrize("kind", KINDS)


def slices_of(arrays):
    return [as_slice(array) for array in arrays]


def data(kind, seed=0, slices=SLICES):
    return KINDS[kind][0](np.random.default_rng(seed), slices)


@ALL
@pytest.mark.parametrize("seed", range(5))
def test_the_scale_follows_the_growth_of_changes(kind, seed):
    assert choose(slices_of(data(kind, seed))).scale == KINDS[kind][1]


@ALL
def test_the_unit_is_the_typical_size(kind):
    arrays = data(kind)
    frame = choose(slices_of(arrays))
    typical = np.median(np.abs(np.array(arrays) - frame.origin))
    assert frame.unit == pytest.approx(typical, rel=1e-9)
    assert frame.origin == (np.median(arrays) if KINDS[kind][1] == LINEAR else 0)


@ALL
@pytest.mark.parametrize("power", [-100, -30, 30, 100])
def test_powers_of_two_change_the_unit_and_nothing_else(kind, power):
    factor = 2.0**power
    one, other = (choose(slices_of([scale * array for array in data(kind)])) for scale in (1.0, factor))
    assert other == Frame(one.origin * factor, one.unit * factor, one.scale)


@ALL
def test_values_in_the_frame_do_not_depend_on_the_unit(kind):
    factor = 2.0**40
    arrays = data(kind)
    one, other = (choose(slices_of([scale * array for array in arrays])) for scale in (1.0, factor))
    np.testing.assert_array_equal(one.relative(arrays[0]), other.relative(arrays[0] * factor))


@pytest.mark.parametrize(("kind", "noise"), [("poisson", 1.0), ("lognormal", 0.5)])
@pytest.mark.parametrize("idle", [0.0, 0.4])
def test_noise_around_zero_does_not_make_sizes_linear(kind, noise, idle):
    """Of sensors: where nothing flows half of the values are negative, but small."""
    rng = np.random.default_rng(4)
    nothing = rng.random(SHAPE) < idle
    arrays = [10 * np.where(nothing, 0, array) + noise * rng.normal(size=SHAPE) for array in data(kind)]
    arrays[3][0, 0] = -0.1
    assert np.min(arrays) < 0
    assert choose(slices_of(arrays)).scale == KINDS[kind][1]


def test_one_gross_negative_number_does_not_make_sizes_linear():
    arrays = data("lognormal", slices=20)
    arrays[5][2, 2] = -9999
    assert choose(slices_of(arrays)).scale == LOG


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_data_with_a_sign_stay_linear(share):
    """Changes that grow with the size do not decide there."""
    rng = np.random.default_rng(5)
    signs = np.where(rng.random(SHAPE) < share, -1, 1)
    assert choose(slices_of([signs * array for array in data("lognormal")])).scale == LINEAR


def test_a_large_offset_is_taken_off_in_double_precision():
    arrays = data("signed")
    frame = choose(slices_of([array + 2.0**20 for array in arrays]))
    plain = choose(slices_of(arrays))
    assert frame.scale == LINEAR
    assert frame.origin == pytest.approx(2.0**20 + plain.origin, abs=1e-6)
    assert frame.unit == pytest.approx(plain.unit, rel=1e-6)
    there = frame.relative(arrays[3] + 2.0**20)
    np.testing.assert_allclose(there, plain.relative(arrays[3]), atol=1e-5)
    np.testing.assert_allclose(frame.absolute(there), arrays[3] + 2.0**20, atol=1e-5)


def test_zeros_first():
    nothing = [np.zeros(SHAPE)] * 3
    assert choose(slices_of(nothing)) is None
    for kind in ("linear", "signed"):
        arrays = data(kind)
        assert choose(slices_of([*nothing, *arrays])) == choose(slices_of(arrays))


@ALL
@pytest.mark.parametrize("factor", [1e-10, 1e7])
def test_garbage_first_does_not_count(kind, factor):
    arrays = data(kind)
    garbage = factor * np.abs(arrays[0])
    assert choose(slices_of([garbage, *arrays[1:]])) == choose(slices_of(arrays[1:]))


def test_one_odd_entry_changes_next_to_nothing():
    arrays = data("lognormal")
    spoilt = [array.copy() for array in arrays]
    spoilt[0][0, 0] = 1e12
    one, other = choose(slices_of(arrays)), choose(slices_of(spoilt))
    assert other.scale == one.scale
    assert other.unit == pytest.approx(one.unit, rel=0.05)


def test_missing_entries_do_not_count():
    rng = np.random.default_rng(3)
    arrays = [np.where(rng.random(SHAPE) < 0.4, np.nan, array) for array in data("poisson", slices=20)]
    frame = choose(slices_of(arrays))
    assert frame.scale == ROOT
    assert frame.unit == np.nanmedian(np.abs(arrays))


def test_two_usual_slices_are_told_from_an_odd_one():
    sizes_ = [1.0, 1000.0, 1.2, 0.0, 1e-5, 0.8]
    recent = slices_of([np.full(SHAPE, size) for size in sizes_])
    assert [float(one.values[0, 0]) for one in usual_slices(recent)] == [1.0, 1.2, 0.8]
    assert [float(one.values[0, 0]) for one in usual_slices(recent[:2])] == [1000.0]  # of two, the later
    assert len(usual_slices([recent[0], recent[2]])) == 2
    assert usual_slices([]) == []


@ALL
def test_a_frame_that_fits_stays(kind):
    current = choose(slices_of(data(kind)))
    assert choose(slices_of(data(kind, seed=1)), current) is current
    louder = [3 * array for array in data(kind)]
    assert choose(slices_of(louder), Frame(current.origin * 3, current.unit, current.scale)).unit == current.unit


@ALL
def test_a_frame_that_does_not_fit_goes(kind):
    current = choose(slices_of(data(kind)))
    found = choose(slices_of([100 * array for array in data(kind)]), current)
    assert found.unit == pytest.approx(100 * current.unit)


def test_the_scale_in_use_is_left_later_than_it_is_entered():
    """Changes that grow with an exponent between the two limits keep whichever scale there was."""
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(np.log(3), np.log(300), SHAPE))
    arrays = slices_of([np.abs(size + 0.3 * size**0.275 * rng.normal(size=SHAPE)) for _ in range(30)])
    assert choose(arrays).scale == ROOT
    assert choose(arrays, Frame(0, 1, LINEAR)).scale == LINEAR
    assert choose(arrays, Frame(0, 1, ROOT)).scale == ROOT


def test_constant_data_have_a_frame():
    frame = choose(slices_of([np.full(SHAPE, 7.0)] * 5))
    assert frame.unit > 0
    assert np.isfinite(frame.relative(np.full(SHAPE, 7.0))).all()
    one = choose(slices_of([np.array([[3.0, np.nan]])]))
    assert np.isfinite(one.relative(np.array([[3.0, 0.0]]))).all()


def test_absolute_undoes_relative():
    frame, x = Frame(-3.5, 1e-7, LINEAR), np.linspace(-1, 1, 9)
    np.testing.assert_allclose(frame.absolute(frame.relative(x)), x, rtol=1e-6, atol=1e-6)


def spoilt(stream, share, rng):
    """Some entries raised far beyond all others."""
    most = 3 * np.max(stream)
    return [x + most * (rng.random(SHAPE) < share) for x in stream]


@pytest.mark.parametrize("kind", ["linear", "poisson", "lognormal"])
def test_gross_errors_of_single_entries_do_not_count(kind):
    make, scale = KINDS[kind]
    rng = np.random.default_rng(1)
    clean = make(rng)
    recent = slices_of(spoilt(clean, 0.15, rng))
    assert misled(recent)
    assert not misled(slices_of(clean))
    assert choose(recent).scale == scale == choose(slices_of(clean)).scale
    assert choose(recent).unit == pytest.approx(choose(slices_of(clean)).unit, rel=0.2)
    left = sum((one.values[one.mask] > np.max(clean)).sum() for one in usual_slices(recent))
    assert left <= 0.1 * sum((one.values > np.max(clean)).sum() for one in recent)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("slices", [2, 3])
def test_what_is_raised_in_few_observations_does_not_make_a_scale(slices, seed):
    """Of entries that are observed twice nobody can say which time was wrong."""
    draw = np.random.default_rng(seed)
    size = draw.uniform(0.2, 2, (40, 40))
    arrays = [size + 0.05 * draw.normal(size=size.shape) for _ in range(slices)]
    for array in arrays:
        array[draw.random(size.shape) < 0.02] += 10
        array[draw.random(size.shape) > 0.2] = np.nan
    assert choose(slices_of(arrays)).scale == LINEAR


def test_counts_that_are_mostly_zero_are_no_errors():
    rng = np.random.default_rng(0)
    recent = slices_of([rng.poisson(0.05, SHAPE).astype(float) for _ in range(SLICES)])
    assert not misled(recent)
    assert all(one.mask.all() for one in usual_slices(recent))
