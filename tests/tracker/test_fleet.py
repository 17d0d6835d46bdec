"""A fleet of trackers is as many single trackers: same results to rounding, whoever is absent, joins or leaves."""

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.config import make_config
from undertow.diagnostics import Flags
from undertow.engine import memory
from undertow.inputs.members import times_of
from undertow.tracker import state
from undertow.tracker.frame import Frame, stacked
from undertow.tracker.scales import LOG

SHAPE = (6, 5)
EVERYONE = 5
TO_ROUNDING = 1e-2
"""Of a standard deviation."""
ARRAYS = ("mean", "std", "low_rank", "low_rank_std", "outliers", "outlier_probability")


def streams(slices, seed=0):
    """Walks of rank 2, one with an offset, one with an odd slice, one that starts with zeros and changes its unit; in
    place of the second, noise in proportion to size; a fifth missing, and one whole slice."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(EVERYONE, 6, 2)), draw.normal(size=(EVERYONE, 5, 2))
    rows = 0.5 * draw.normal(size=(slices, EVERYONE, 2)).cumsum(axis=0)
    x = np.einsum("nir,njr,tnr->tnij", left, right, rows) + 0.05 * draw.normal(size=(slices, EVERYONE, *SHAPE))
    sizes = np.random.default_rng(seed + 100)
    x[:, 1] = 100 * np.exp(sizes.normal(size=SHAPE) + 0.3 * sizes.normal(size=(slices, *SHAPE)))
    x[:, 2] += 1e5
    x[15:16, 3] = 20 * draw.normal(size=SHAPE)
    x[18:, 4] *= 1000
    x[draw.random(x.shape) < 0.2] = np.nan
    x[9:10, 2] = np.nan
    x[:2, 4] = 0
    x[12:13, 0, 2, 3] = 50  # observed, whatever is missing
    return x


def same(one, other, near=TO_ROUNDING):
    """One member's result against a single tracker's. Where an entry is all but determined by the others of its slice,
    rounding is amplified: numbers are compared in units of what is typical of the slice."""
    typical = max(float(np.median(other.std)), np.finfo(np.float32).eps * float(np.abs(other.mean).max()))
    for name in ARRAYS:
        unit = 1.0 if name == "outlier_probability" else typical
        atol = (5 if name.endswith("std") else 1) * near * unit
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=atol, err_msg=name)
    np.testing.assert_array_equal(one.outlier_probability > 0.5, other.outlier_probability > 0.5)
    np.testing.assert_array_equal(one.novelty, other.novelty)
    np.testing.assert_allclose(one.noise_std, other.noise_std, rtol=0.2 * near)
    assert list(one.weights) == list(other.weights)
    np.testing.assert_allclose(shares(one), shares(other), atol=1e-2)
    assert abs(one.rank - other.rank) <= (near > TO_ROUNDING)
    assert (one.iterations, one.status, one.settings) == (other.iterations, other.status, other.settings)
    assert one.events.slice_off == other.events.slice_off
    assert one.events.rows == other.events.rows


def shares(result):
    """Weights of predictors; of those of one kind together, since where these say the same rounding decides between
    them."""
    kinds = ("cp_", "covariance_")
    alone = [weight for name, weight in result.weights.items() if not name.startswith(kinds)]
    return alone + [sum(weight for name, weight in result.weights.items() if name.startswith(kind)) for kind in kinds]


def leaves(fleet):
    return [np.asarray(leaf) for group in fleet._streams.groups for leaf in jax.tree.leaves(group.arrays)]


@pytest.mark.slow
def test_same_as_single_trackers_with_gaps_and_another_unit():
    slices = 25
    x, draw = streams(slices), np.random.default_rng(1)
    fleet = ut.Fleet(EVERYONE, SHAPE, model="tracker")
    single = [ut.Tracker() for _ in range(EVERYONE)]
    scales, off = set(), False
    for t in range(slices):
        present = draw.random(EVERYONE) < 0.85
        times = dict.fromkeys((0, 2), t + 6.4 * (t > 15))  # others have none
        result = fleet.update(x[t], present=present, time=times)
        assert result.mean.shape == (EVERYONE, *SHAPE)
        for member in range(EVERYONE):
            if present[member]:
                other = single[member].update(x[t, member], time=times.get(member))
                # Zeros at first, then numbers a thousand times as large (30,000 standard deviations): rounding in
                # single precision is amplified, and changes of 1e-7 in the data decide on a component.
                # So it is while components have seen a few slices only, and where the logarithm makes the low rank of
                # large entries of it.
                near = 3.0 if member == 4 and t >= 18 else TO_ROUNDING if member not in (1, 4) and t >= 5 else 0.1
                same(result[member], other, near)
                if t == 12 and member == 0:
                    mine, its = result[0].explain((2, 3)), other.explain((2, 3))
                    assert mine.flagged
                    assert mine.value == its.value
                    assert [row["predictor"] for row in mine.predictors] == [row["predictor"] for row in its.predictors]
                    said = [[row["said"] for row in one.predictors] for one in (mine, its)]
                    np.testing.assert_allclose(*said, atol=0.05)
                np.testing.assert_array_equal(result.weights[member], list(result[member].weights.values()))
                assert result.status[member].codes == other.status.codes
                scales.add(other.settings["scale"])
                off |= Flags.SLICE_OFF in other.flags
            else:
                assert np.isnan(result.mean[member]).all()
                assert np.isnan(result.weights[member]).all()
                assert result.events[member] is None
                assert (result.rank[member], result.flags[member]) == (-1, -1)
                with pytest.raises(ValueError, match=f"member {member} was absent"):
                    result[member]
    assert len(scales) > 1
    assert off


def test_times_of_members_are_one_for_all_a_list_or_by_number():
    members = np.array([3, 5, 8])
    assert times_of(None, members) is None
    assert times_of(7.0, members) == [7.0] * 3
    assert times_of(np.datetime64("2026-03-01"), members) == [np.datetime64("2026-03-01")] * 3
    assert times_of([1, 2, 3], members) == [1, 2, 3]
    assert times_of({8: 4, 3: 2}, members) == [2, None, 4]
    with pytest.raises(ValueError, match="one for each of the 3 members, got 2"):
        times_of([1, 2], members)
    with pytest.raises(KeyError, match="member 4"):
        times_of({4: 1}, members)


def test_times_of_cp_models_are_refused():
    with pytest.raises(ValueError, match="time is for model='tracker', got 3 with 'cp'"):
        ut.Fleet(1, (7,), max_rank=3, window=4).update(np.ones((1, 7)), time=3)


@pytest.mark.slow
def test_a_time_that_is_refused_leaves_all_members_as_they_are():
    fleet, x = ut.Fleet(2, (7,), model="tracker"), np.arange(14.0).reshape(2, 7)
    fleet.update(x, time=5)
    before = fleet.to_bytes()
    with pytest.raises(ValueError, match="member 1: time must be later"):
        fleet.update(x + 1, time=[6, 5])
    assert fleet.to_bytes() == before
    again = ut.Fleet.from_bytes(before)
    with pytest.raises(ValueError, match="member 0: time must be later"):
        again.update(x + 1, time=4)


@pytest.mark.slow
def test_members_come_and_go_and_the_absent_stay_as_they_are_bit_for_bit():
    x = streams(6)
    fleet = ut.Fleet(EVERYONE, SHAPE, model="tracker")
    for t in range(3):
        fleet.update(x[t])
    before, here = leaves(fleet), np.array([True, False, True, False, True])
    fleet.update(x[3], present=here)
    for old, new in zip(before, leaves(fleet), strict=True):
        np.testing.assert_array_equal(new[:EVERYONE][~here], old[:EVERYONE][~here])
    alone = fleet.extract(3)
    same(fleet.update({3: x[4, 3]})[3], alone.update(x[4, 3]))
    fleet.leave([1, 4])
    assert fleet.join(2).tolist() == [5, 6]
    assert fleet.members.tolist() == [0, 2, 3, 5, 6]
    result = fleet.update({6: x[5, 1]})
    assert result.present.tolist() == [False] * 4 + [True]
    same(result[4], ut.Tracker().update(x[5, 1]))
    with pytest.raises(ValueError, match="member 5 has seen no slice yet: make a new Tracker"):
        fleet.extract(5)
    assert np.isnan(fleet.update(x[5], present=np.zeros(5, bool)).mean).all()


@pytest.mark.slow
def test_a_tracker_travels_alone_to_a_fleet():
    x = streams(6)
    fleet = ut.Fleet(EVERYONE, SHAPE, model="tracker")
    for t in range(4):
        fleet.update(x[t])
    packed = fleet.extract(3).to_bytes()
    fleet.leave(3)
    assert fleet.adopt(ut.from_bytes(packed)) == EVERYONE
    alone = ut.from_bytes(packed)
    for t in (4, 5):
        same(fleet.update({EVERYONE: x[t, 3]})[EVERYONE - 1], alone.update(x[t, 3]))
    for model, error, message in (
        (ut.RobustCP(), TypeError, "must be a Tracker"),
        (ut.Tracker(), ValueError, "has seen no slice yet"),
    ):
        with pytest.raises(error, match=message):
            fleet.adopt(model)


@pytest.mark.slow
def test_save_and_load_go_on_exactly(tmp_path):
    x = streams(6)
    fleet = ut.Fleet(EVERYONE, SHAPE, model="tracker")
    for t in range(4):
        fleet.update(x[t])
    fleet.leave(2)
    fleet.save(tmp_path / "fleet.ckpt")
    assert fleet.to_bytes() == (tmp_path / "fleet.ckpt").read_bytes()
    other = ut.Fleet.load(tmp_path / "fleet.ckpt")
    assert other.to_bytes() == ut.Fleet.from_bytes(fleet.to_bytes()).to_bytes() == fleet.to_bytes()
    assert repr(other) == "Fleet of 4 trackers of 6×5"
    for t in (4, 5):
        rest = x[t][[0, 1, 3, 4]]
        one, two = fleet.update(rest), other.update(rest)
        for name in (*ARRAYS, "weights", "flags", "rank"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert other.join().tolist() == fleet.join().tolist() == [5]
    with pytest.raises(ut.CheckpointError, match="not a model"):
        ut.load(tmp_path / "fleet.ckpt")


@pytest.mark.full
def test_a_member_whose_components_need_more_slots_moves_and_goes_on(monkeypatch):
    """Two slots to begin with; the member of rank 5 gets four, the one of rank 1 does not."""
    few = make_config(max_rank=2, window=4), make_config(max_rank=2, window=4, robust=False, noise="shared")
    monkeypatch.setattr(state, "configs", lambda shape: few)
    draw = np.random.default_rng(0)
    left, right, rows = (draw.normal(size=size) for size in ((6, 5), (5, 5), (14, 5)))
    x = np.stack([np.einsum("ir,jr,tr->tij", left[:, :r], right[:, :r], rows[:, :r]) for r in (5, 1)], axis=1)
    x += 0.01 * draw.normal(size=x.shape)
    fleet, single = ut.Fleet(2, SHAPE, model="tracker"), [ut.Tracker(), ut.Tracker()]
    for t in range(len(x)):
        result = fleet.update(x[t])
        if t == 11:
            fleet = ut.Fleet.from_bytes(fleet.to_bytes())
        for member in range(2):
            # At first predictors are equally good, and rounding decides between them.
            near = 0.1 if t < 5 else TO_ROUNDING
            same(result[member], single[member].update(x[t, member]), near)
    sizes = {config.max_rank for group in fleet._streams.groups for config in group.configs}
    assert sizes >= {2, 4}
    fleet.leave(0)
    assert np.isfinite(fleet.update(x[-1, 1:]).mean).all()


def test_what_a_fleet_of_trackers_does_not_know_is_refused():
    with pytest.raises(ValueError, match="a tracker has nothing to set, got window"):
        ut.Fleet(2, SHAPE, model="tracker", window=3)
    with pytest.raises(ValueError, match="a tracker has nothing to set, got preset"):
        ut.Fleet(2, SHAPE, "fast", model="tracker")
    with pytest.raises(ValueError, match="model must be 'cp' or 'tracker', got 'cpd'"):
        ut.Fleet(2, SHAPE, model="cpd")


@pytest.mark.slow
def test_more_trackers_than_memory_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(memory, "free_device_memory", lambda: 10_000_000)
    with pytest.raises(ValueError, match=r"128 trackers of shape \(6, 5\) need about .* use fewer members"):
        ut.Fleet(100, SHAPE, model="tracker")


def test_frames_of_many_streams_as_one():
    frames = Frame(1.0, 2.0, LOG), Frame(-3.0, 0.5)
    values = np.arange(12.0).reshape(2, 3, 2)
    together = stacked(frames, 2)
    for number, frame in enumerate(frames):
        np.testing.assert_array_equal(together.relative(values)[number], frame.relative(values[number]))
        np.testing.assert_array_equal(together.absolute(values)[number], frame.absolute(values[number]))
    assert np.ravel(together.scale).tolist() == [LOG, 0]


def days(slices, seed=0):
    """Each member has a day of eight slices of its own, of rank 1; one of sizes."""
    draw = np.random.default_rng(seed)
    hour, left, right = draw.normal(size=(8, EVERYONE, 1, 1)), draw.uniform(1, 2, 6)[:, None], draw.uniform(1, 2, 5)
    x = 10 + 3 * (hour * left * right)[np.arange(slices) % 8] + 0.1 * draw.normal(size=(slices, EVERYONE, *SHAPE))
    x[:, 1] = np.exp(x[:, 1] / 3)
    x[20, 2, 3, 1] = np.nan
    return x


@pytest.mark.slow
@pytest.mark.parametrize("period", ["auto", 8])
def test_members_have_seasons_and_forecasts_where_asked_for(period, tmp_path):
    x = days(36)
    fleet = ut.Fleet(EVERYONE, SHAPE, model="tracker", period=period)
    single = [ut.Tracker(None if period == "auto" else period) for _ in range(EVERYONE)]
    for t in range(34):
        here = (np.arange(EVERYONE) != t % EVERYONE) | (t < 26)  # whoever is absent stays where it was
        result = fleet.update(x[t], present=here)
        for member in np.flatnonzero(here):
            one, other = result[member], single[member].update(x[t, member])
            # Rounding decides on components of the CP models.
            np.testing.assert_allclose(one.mean, other.mean, atol=0.5 * float(np.median(other.std)))
            assert abs(one.weights["season"] - other.weights["season"]) < 0.2
    fleet.save(tmp_path / "fleet.ut")
    again = ut.Fleet.load(tmp_path / "fleet.ut")
    ahead, later = fleet.forecast(8), again.forecast(8, members=[2, 0])
    assert list(ahead) == list(range(EVERYONE))
    assert list(later) == [2, 0]
    for member, found in ahead.items():
        expected = single[member].forecast(8)
        assert fleet.extract(member).periods == single[member].periods
        assert single[member].periods[0] == 8
        np.testing.assert_allclose(found.mean, expected.mean, atol=0.5 * float(expected.std.mean()))
        np.testing.assert_allclose(found.std, expected.std, rtol=0.5)
    np.testing.assert_array_equal(later[2].mean, ahead[2].mean)
    one, other = fleet.update(x[34]), again.update(x[34])
    np.testing.assert_array_equal(one.mean, other.mean)
    moved = ut.Fleet(0, SHAPE, model="tracker", period=period)
    assert moved.forecast(3) == {}
    number = moved.adopt(fleet.extract(3))
    np.testing.assert_array_equal(moved.forecast(3)[number].mean, fleet.forecast(3, members=3)[3].mean)


@pytest.mark.slow
def test_seasons_that_a_fleet_cannot_have_are_refused():
    for arguments, message in (
        ({"period": 8}, "period is for model='tracker', got 8 with 'cp'"),
        ({"model": "tracker", "period": "day"}, "period must be an integer of at least 2.*got 'day'"),
        ({"model": "tracker", "period": 1}, "got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ut.Fleet(1, SHAPE, **arguments)
    with pytest.raises(ValueError, match="forecast needs a fleet of trackers with seasons"):
        ut.Fleet(1, SHAPE, model="tracker").forecast(3)
    with pytest.raises(ValueError, match="member 0 has seen no slice yet"):
        ut.Fleet(1, SHAPE, model="tracker", period=8).forecast(3, members=0)
