"""One stream through the tracker: what is planted in it is found, named and not learned."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.inputs.dense import as_slice
from undertow.tracker import answering, judging, weighing
from undertow.tracker.core import fresh_core
from undertow.tracker.frame import Frame, choose
from undertow.tracker.holding_out import held_out
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Prediction
from undertow.tracker.predictors.cp import Regression
from undertow.tracker.recent import RECENT, learned_nonsense, next_frames, remembered, was_constant
from undertow.tracker.scales import LINEAR, LOG, ROOT

SHAPE, NOISE = (6, 5), 0.1


def clean(count, seed):
    rng = np.random.default_rng(seed)
    level = 3 * np.random.default_rng(0).normal(size=SHAPE)
    return level + NOISE * rng.normal(size=(count, *SHAPE))


@pytest.fixture(scope="module")
def begun():
    return ut.Tracker().partial_fit(clean(25, 1))


@pytest.fixture
def tracker(begun):
    return copy.copy(begun)


@pytest.mark.slow
def test_a_spike_is_flagged_and_not_learned(tracker):
    slices = clean(2, 2)
    slices[0, 2, 3] += 5
    spiked, after = (tracker.update(x) for x in slices)
    assert spiked.outlier_probability[2, 3] > 0.99
    assert (np.delete(spiked.outlier_probability.ravel(), 13) < 0.5).all()
    assert spiked.outliers[2, 3] == pytest.approx(5, abs=1)
    assert abs(after.mean[2, 3] - clean(50, 3).mean(0)[2, 3]) < 1


@pytest.mark.slow
def test_intervals_hold_about_95_per_cent(tracker):
    held = []
    for x in clean(20, 4):
        hidden = x.copy()
        hidden[1, :] = np.nan
        result = tracker.update(hidden)
        held.append(np.abs(x - result.mean)[1] < 1.96 * result.std[1])
    assert np.mean(held) > 0.8


@pytest.mark.slow
def test_a_row_and_a_slice_that_are_off_are_named(tracker):
    row, whole = clean(2, 5)
    row[4] += 2
    found = tracker.update(row)
    assert found.events.rows == ((0, 4),)
    assert "ROW_OFF" in found.status.codes
    found = tracker.update(whole + 8)
    assert found.events.slice_off
    assert "SLICE_OFF" in found.status.codes


@pytest.mark.slow
def test_a_lasting_change_is_accepted(tracker):
    slices = clean(10, 6)
    slices[:, 1, 1] += 5
    found = [tracker.update(x) for x in slices]
    assert any("LASTING_CHANGE" in result.status.codes for result in found)
    assert found[-1].outlier_probability[1, 1] < 0.5
    assert found[-1].mean[1, 1] == pytest.approx(slices[-1, 1, 1], abs=1)


@pytest.mark.slow
def test_a_dead_sensor_is_named(tracker):
    slices = clean(16, 7)
    slices[:, 0, 2] = slices[0, 0, 2]
    found = [tracker.update(x) for x in slices]
    assert "DEAD_SENSOR" in found[-1].status.codes
    assert [int(index[0]) for index in found[-1].events.dead] == [0, 2]


def test_the_memory_of_slices_is_bounded():
    recent, used = (), 0
    for number in range(RECENT + 5):
        recent, used = remembered(recent, as_slice(np.full(SHAPE, float(number))), used)
    assert used == RECENT + 5
    assert len(recent) == RECENT
    assert recent[-1].values[0, 0] == RECENT + 4


@pytest.mark.slow
class Half:
    """A predictor as CONTRIBUTING describes it."""

    names = ("half",)

    def init(self, entries):
        return jnp.zeros(entries)

    def predict(self, state, given):
        return Prediction(state / 2, jnp.ones_like(state), jnp.ones_like(state))

    def learn(self, state, given):
        return given.values, state / 2


def test_a_new_predictor_is_one_line(monkeypatch):
    """In `OTHERS`: state, weights and what is said of a slice have room for it."""

    def judged():
        nothing = Prediction(*(jnp.full(6, jnp.nan),) * 3)
        mask = jnp.ones(6, bool)
        return judging.judge.__wrapped__(fresh_core(6, 0), jnp.ones(6), mask, jnp.int32(0), nothing, ())

    sizes = []
    for others in (registry.OTHERS, (*registry.OTHERS, Half())):
        names = ("level", *(name for one in others for name in one.names), "season")
        monkeypatch.setattr(registry, "OTHERS", others)
        monkeypatch.setattr(registry, "NAMES", names)
        verdict = jax.eval_shape(lambda: judged())  # a new function: what was traced before must not be found
        sizes.append((len(names), *verdict.weighing.weights.shape, verdict.means.shape[0]))
    assert np.diff(sizes, axis=0).tolist() == [[1, 1, 1]]


def test_the_first_slice_leaves_the_types_of_all_arrays():
    """Else every program would be compiled twice."""

    def after(core, values, mask, scale):
        said = Prediction(values, values, values)
        design, row = jnp.outer(values, values[:4]), values[:4]
        regressions = (Regression(design, row, row, values, values, values, values),) * 2
        verdict = judging.judge(core, values, mask, scale, said, regressions)
        return answering.learn(core, verdict, values, mask, scale, values, (values, values))[0]

    def avals(core):
        return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), core)

    before = jax.eval_shape(lambda: fresh_core(30, 2))
    values, mask = jax.ShapeDtypeStruct((30,), jnp.float32), jax.ShapeDtypeStruct((30,), bool)
    assert avals(jax.eval_shape(after, before, values, mask, jax.ShapeDtypeStruct((), jnp.int32))) == avals(before)


@pytest.mark.parametrize("rows", [1, 2, 7, 8])
def test_the_middle_of_rows_is_the_median_of_those_that_are_there(rows):
    x = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    absent = np.arange(rows) % 3 == 1
    for missing in (absent, absent & False):
        found = weighing.middle(jnp.asarray(x), jnp.asarray(missing))
        np.testing.assert_allclose(found, np.median(x[~missing], axis=0), rtol=1e-6)


def spoilt(count, share=0.15):
    """Slices of level streams, a share of the entries grossly off; True where they are."""
    draw = np.random.default_rng(5)
    values = 5 + draw.normal(size=(6, 5)) + 0.1 * draw.normal(size=(count, 6, 5))
    bad = draw.random(values.shape) < share
    return values + 500 * bad, bad


@pytest.mark.parametrize("scale", [LINEAR, ROOT, LOG])
@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_another_size_gets_another_unit_whatever_the_scale(scale, spread, factor):
    """Once most of the recent slices are of it, not at the next review; also where they suggest another scale."""
    draw = np.random.default_rng(7)
    size = np.exp(draw.uniform(np.log(3), np.log(300), SHAPE))
    old = [as_slice(size * np.exp(spread * draw.normal(size=SHAPE)) + 0.5 * draw.normal(size=SHAPE)) for _ in range(20)]
    new = [as_slice(one.values * factor) for one in old]
    current = choose(old, scale=scale)
    assert next_frames(current, (*old[2:], *new[:2]), 45) == ()  # two slices are not the stream
    (first, *_) = next_frames(current, (*old[12:], *new[:12]), 55)
    assert factor / 4 < first.unit / current.unit < 4 * factor


def test_equal_values_are_held_out_by_what_was_expected_of_them():
    """And not by their position."""
    draw = np.random.default_rng(8)
    values, expected, mask = draw.poisson(0.7, 60).astype(np.float32), draw.normal(size=60), draw.random(60) < 0.8
    order = draw.permutation(60)
    for number in range(1, 20):
        held = held_out(jnp.asarray(values), jnp.asarray(expected), jnp.asarray(mask), jnp.int32(number))
        other = held_out(*(jnp.asarray(part[order]) for part in (values, expected, mask)), jnp.int32(number))
        np.testing.assert_array_equal(np.asarray(held)[order], other)
    assert not held_out(jnp.asarray(values), jnp.asarray(expected), jnp.asarray(mask), jnp.int32(0)).any()


def test_first_slices_are_learned_anew_only_where_much_is_off_and_all_are_there():
    recent = tuple(as_slice(x) for x in spoilt(20)[0])
    clean = tuple(as_slice(x) for x in spoilt(20, 0)[0])
    assert [n for n in range(1, 21) if learned_nonsense(Frame(), recent[:n], n)] == [5, 10, 20]
    assert not any(learned_nonsense(Frame(), clean[:n], n) for n in range(1, 21))
    assert not learned_nonsense(Frame(), recent, 40)
    assert not learned_nonsense(None, recent, 20)


@pytest.mark.slow
def test_much_that_is_off_from_the_first_slice_on_is_found():
    model, found = ut.Tracker(), []
    values, bad = spoilt(45)
    for x in values:
        found.append(model.update(x).outlier_probability > 0.5)
    flagged = np.stack(found)[20:]
    assert flagged[bad[20:]].mean() > 0.9
    assert flagged[~bad[20:]].mean() < 0.05


def test_a_stream_that_was_constant_begins_anew_when_most_of_it_moves():
    still, moving = (as_slice(np.arange(30.0).reshape(SHAPE) + shift) for shift in (0, 1))
    walker = as_slice(np.where(np.arange(30).reshape(SHAPE) < 12, 50.0, still.values))
    assert was_constant((still, still, moving))
    assert not was_constant((still, still, still))
    assert not was_constant((still, still, walker))  # who walks through a still picture
    assert not was_constant((moving, still, moving))
    assert not was_constant((still, moving))
