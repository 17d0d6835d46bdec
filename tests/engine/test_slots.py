"""Arrays with empty slots: the same results, and one program for similar models."""

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine.slots import LARGE_WINDOW, rung, slots
from undertow.engine.state import State, blank, init, precision
from undertow.model.settings import Slots
from undertow.model.step import step

SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4, "dtype": "float64"}


def slices(count, seed=0):
    """Rank 2 with noise, outliers and gaps; never the same row twice."""
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(size, 2)) for size in SHAPE]
    x = np.einsum("ir,jr,tr->tij", *factors, rng.normal(size=(count, 2))) + 0.05 * rng.normal(size=(count, *SHAPE))
    x[rng.random(x.shape) < 0.03] += 8
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


def test_the_ladder_has_a_few_rungs_each_at_most_a_third_above_the_one_before():
    rungs = sorted({rung(size) for size in range(1, 100)})
    assert rungs == [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128]
    assert all(rung(size) >= size and rung(rung(size)) == rung(size) for size in range(1, 200))


def test_small_windows_have_slots_from_the_ladder_and_all_others_none_that_are_empty():
    small = ut.make_config(max_rank=7, window=13)
    assert slots(small, SHAPE) == (16, 8)
    assert slots(small, (LARGE_WINDOW // 13 + 1,)) == (13, 7)
    assert slots(small, SHAPE, entries=64) == (13, 7)
    assert slots(ut.make_config("paper", max_rank=7, window=13), SHAPE) == (13, 7)
    assert slots(ut.make_config(memory="recursive", max_rank=7, window=13), SHAPE) == (13, 7)
    assert slots(ut.make_config(), (40, 40)) == (20, 16)  # what most models have costs nothing


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"level": True}], ids=["plain", "level"])
def test_empty_slots_change_nothing(settings):
    config = ut.make_config(**SMALL, **settings)
    exact = init(config, SHAPE)
    with precision(config):
        wide = State(config, SHAPE, 0.0, 0, blank(config, SHAPE, room=Slots(6, 5)))
    assert wide.capacity == exact.capacity == 3
    for x in slices(14):
        exact, expected = ut.step(exact, x)
        wide, found = ut.step(wide, x)
        for name in ("mean", "std", "outlier_probability"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8)
        assert (found.rank, found.status, found.iterations) == (expected.rank, expected.status, expected.iterations)
    assert found.rank >= 2
    later, usual = ut.step(wide, np.full(SHAPE, np.nan))[1], ut.step(exact, np.full(SHAPE, np.nan))[1]
    np.testing.assert_allclose(later.mean, usual.mean, rtol=1e-6, atol=1e-8)
    # What is not used is as it was in the beginning: no row, no observation.
    assert not np.asarray(wide.core.window.mask)[4:].any()
    assert not np.asarray(wide.core.factors.active)[3:].any()
    assert not np.asarray(wide.core.factors.row_means)[4:].any()


@pytest.mark.slow
def test_similar_models_share_a_program_and_resume_bit_for_bit():
    x = slices(12, seed=1)
    first = ut.RobustCP(max_rank=7, window=7)
    for one in x[:9]:
        first.update(one)
    programs = step.count()
    again = ut.from_bytes(first.to_bytes())
    other = ut.RobustCP(max_rank=8, window=8, forgetting=0.9)
    for one in x[9:]:
        result, resumed = first.update(one), again.update(one)
        np.testing.assert_array_equal(result.mean, resumed.mean)
        np.testing.assert_array_equal(result.outlier_probability, resumed.outlier_probability)
        other.update(one)
    assert step.count() == programs
    assert first.factors.temporal.shape[0] == 7
    assert first.smoothed(6).mean.shape == SHAPE


@pytest.mark.slow
def test_members_of_fleets_have_the_same_slots_as_single_models():
    x = slices(6, seed=2)
    fleet, single = ut.Fleet(2, SHAPE, max_rank=3, window=7), ut.RobustCP(max_rank=3, window=7)
    for one in x:
        result, expected = fleet.update(np.stack([one, one])), single.update(one)
        np.testing.assert_allclose(result.mean[1], expected.mean, rtol=2e-3, atol=2e-3)
    taken = fleet.extract(1)
    own, alike = (jax.tree.map(np.shape, one.state.core) for one in (taken, single))
    assert own == alike
