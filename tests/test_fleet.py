"""A fleet is as many single streams: same results to rounding, whoever is absent, joins or leaves."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine import batching
from undertow.model import platform

pytestmark = pytest.mark.slow
SHAPE = (6, 5)
SETTINGS = {"max_rank": 3, "window": 4, "dtype": "float64"}


def on_platform(monkeypatch, **changes):
    device = replace(platform.current(), **changes)
    monkeypatch.setattr(platform, "current", lambda: device)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches of 8 and 1, so that members are gathered and put back."""
    on_platform(monkeypatch, smallest_batch=1)


def streams(n, slices, seed=0, units=True):
    """Ranks 0 to 3, units from 1 to 10⁵, a tenth missing, some outliers."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(n, SHAPE[0], 3)), draw.normal(size=(n, SHAPE[1], 3))
    left *= np.arange(3) < (np.arange(n) % 4)[:, None, None]
    x = np.einsum("nir,njr,tnr->tnij", left, right, draw.normal(size=(slices, n, 3)))
    x += 0.05 * draw.normal(size=x.shape) + 8 * (draw.random(x.shape) < 0.05)
    x[draw.random(x.shape) < 0.1] = np.nan
    return x * (10.0 ** np.arange(n))[:, None, None] if units else x


def cores(fleet):
    return [np.asarray(leaf) for chunk in fleet._streams.chunks for leaf in jax.tree.leaves(chunk)]


def same(one, other):
    """One member's result against a single model's."""
    for name in ("low_rank", "std", "low_rank_std", "outliers"):
        scale = max(np.abs(other.low_rank).max(), other.noise_std)
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(one.outlier_probability, other.outlier_probability, atol=1e-6)
    np.testing.assert_array_equal(one.outlier_probability > 0.5, other.outlier_probability > 0.5)
    np.testing.assert_allclose([one.noise_std, one.elbo], [other.noise_std, other.elbo], rtol=1e-6)
    assert (one.rank, one.iterations, one.status) == (other.rank, other.iterations, other.status)
    assert one.settings == other.settings


@pytest.mark.parametrize(
    ("settings", "slices"),
    [
        pytest.param({}, 25, id="plain"),
        pytest.param({"robust": False, "noise": "shared", "scale": "log"}, 8, id="not robust"),
        pytest.param({"level": True, "scale": "log"}, 8, id="level", marks=pytest.mark.full),
    ],
)
def test_same_as_single_streams_with_gaps_and_latecomers(settings, slices, monkeypatch):
    if "level" in settings:  # another program: compiled for one size only
        on_platform(monkeypatch, smallest_batch=8)
    x = streams(6, slices)
    x[: slices // 2, 3] = np.nan  # nothing observed for long
    x[:2, 2] = 0.0  # zeros first: the unit comes later
    x[4, 1, 0, 0] *= 1e12  # too large to compute with
    fleet = ut.Fleet(5, SHAPE, **SETTINGS, **settings)
    single = [ut.RobustCP(**SETTINGS, **settings) for _ in range(6)]
    ranks, draw = set(), np.random.default_rng(1)
    for t in range(slices):
        if t == 3:
            assert fleet.join().tolist() == [5]
        n = len(fleet)
        present = draw.random(n) < 0.8
        result = fleet.update(x[t, :n], present=present)
        assert result.low_rank.shape == (n, *SHAPE)
        for member in range(n):
            if present[member]:
                other = single[member].update(x[t, member])
                same(result[member], other)
                ranks.add(other.rank)
            else:
                assert np.isnan(result.low_rank[member]).all()
                assert np.isnan(result.noise_std[member])
                assert (result.rank[member], result.iterations[member], result.flags[member]) == (-1, -1, -1)
                with pytest.raises(ValueError, match=f"member {member} was absent"):
                    result[member]
    assert len(ranks) > 1


@pytest.mark.parametrize(("kind", "reported"), [("f4", "f4"), ("f8", "f8")])
def test_results_come_in_the_precision_of_the_data_and_may_be_written_to(kind, reported):
    fleet = ut.Fleet(3, SHAPE, max_rank=3, window=4)
    for x in streams(3, 3, units=False).astype(kind):
        for result in (fleet.update(x), fleet.update(dict(enumerate(x)))):
            for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
                assert getattr(result, name).dtype == reported
                getattr(result, name)[:] = 0


def test_the_absent_stay_as_they_are_bit_for_bit():
    x = streams(6, 4)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    for t in range(3):
        fleet.update(x[t])
    before = cores(fleet)
    here = np.array([True, False, True, False, True, True])
    x[3, 1] = np.inf  # nobody looks at what stands there
    fleet.update(x[3], present=here)
    for old, new in zip(before, cores(fleet), strict=True):
        np.testing.assert_array_equal(new[:6][~here], old[:6][~here])
    assert any((new[:6][here] != old[:6][here]).any() for old, new in zip(before, cores(fleet), strict=True))
    nobody = fleet.update(x[3], present=np.zeros(6, bool))
    assert np.isnan(nobody.low_rank).all()


def test_members_come_and_go_and_numbers_are_never_given_twice():
    x = streams(6, 5, units=False)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    fleet.update(x[0])
    fleet.leave([1, 4])
    assert fleet.members.tolist() == [0, 2, 3, 5]
    assert fleet.join(2).tolist() == [6, 7]
    assert fleet.members.tolist() == [0, 2, 3, 5, 6, 7]
    result = fleet.update({7: x[1, 1], 3: x[1, 3]})
    assert result.members[result.present].tolist() == [3, 7]
    fresh = ut.RobustCP(**SETTINGS)
    same(result[5], fresh.update(x[1, 1]))
    with pytest.raises(KeyError, match="member 4 is not in the fleet"):
        fleet.update({4: x[1, 0]})
    with pytest.raises(KeyError, match="member 1 is not in the fleet"):
        fleet.leave(1)
    fleet.leave(fleet.members)
    assert len(fleet) == 0


def test_a_fleet_that_grows_keeps_what_it_has_learned(monkeypatch):
    """One chunk is doubled up to the usual size; beyond it there are more chunks, and nothing is compiled for them."""
    x = streams(10, 4, units=False)
    fleet = ut.Fleet(3, SHAPE, **SETTINGS)
    assert [len(chunk.window.newest) for chunk in fleet._streams.chunks] == [4]
    fleet.join(3)
    assert [len(chunk.window.newest) for chunk in fleet._streams.chunks] == [8]
    for t in range(2):
        fleet.update(x[t, :6])
    before, single = cores(fleet), [fleet.extract(member) for member in range(6)]
    on_platform(monkeypatch, smallest_batch=1, chunk_members=8)
    fleet.join(4)
    assert [len(chunk.window.newest) for chunk in fleet._streams.chunks] == [8, 8]
    single += [ut.RobustCP(**SETTINGS) for _ in range(4)]
    result = fleet.update(x[2])
    for member in range(10):
        same(result[member], single[member].update(x[2, member]))
    wide = ut.Fleet(6, SHAPE, **SETTINGS)
    for t in range(2):
        wide.update(x[t, :6])
    on_platform(monkeypatch, smallest_batch=1, chunk_members=16)
    wide.join(4)
    for old, new in zip(before, cores(wide), strict=True):
        np.testing.assert_array_equal(new[:6], old[:6])
        assert len(new) == 16


def test_save_and_load_go_on_exactly(tmp_path):
    x = streams(6, 6)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    for t in range(4):
        fleet.update(x[t])
    fleet.leave(2)
    fleet.save(tmp_path / "fleet.ckpt")
    assert fleet.to_bytes() == (tmp_path / "fleet.ckpt").read_bytes()
    other = ut.Fleet.load(tmp_path / "fleet.ckpt")
    assert ut.Fleet.from_bytes(fleet.to_bytes()).to_bytes() == other.to_bytes() == fleet.to_bytes()
    assert other.members.tolist() == fleet.members.tolist()
    rest = x[4][[0, 1, 3, 4, 5]]
    one, two = fleet.update(rest), other.update(rest)
    np.testing.assert_allclose(one.low_rank, two.low_rank, rtol=1e-9)
    assert other.join().tolist() == fleet.join().tolist()
    with pytest.raises(ut.CheckpointError, match="'Fleet', not a model"):
        ut.load(tmp_path / "fleet.ckpt")
    with pytest.raises(ut.CheckpointError, match="'Fleet', not a model"):
        ut.from_bytes(fleet.to_bytes())
    alone = fleet.extract(3)
    alone.save(tmp_path / "model.ckpt")
    with pytest.raises(ut.CheckpointError, match="not a fleet"):
        ut.Fleet.load(tmp_path / "model.ckpt")
    content = bytearray((tmp_path / "fleet.ckpt").read_bytes())
    content[-100] ^= 1
    (tmp_path / "fleet.ckpt").write_bytes(content)
    with pytest.raises(ut.CheckpointError, match="damaged"):
        ut.Fleet.load(tmp_path / "fleet.ckpt")


def test_a_member_can_go_on_alone():
    x = streams(6, 6)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    for t in range(5):
        fleet.update(x[t])
    alone = fleet.extract(3)
    same(fleet.update(x[5])[3], alone.update(x[5, 3]))
    assert alone.get_params()["preset"] == "default"
    fresh = fleet.join()[0]
    with pytest.raises(ValueError, match="has seen no slice"):
        fleet.extract(fresh)


def test_bad_input_changes_nothing_for_anyone():
    x = streams(6, 2)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    fleet.update(x[0])
    before, steps = cores(fleet), fleet._streams.steps.copy()
    bad = x[1].copy()
    bad[4, 2, 2] = np.inf
    with pytest.raises(ValueError, match="member 4: x must be finite"):
        fleet.update(bad)
    with pytest.raises(ValueError, match=r"x must have shape \(6, 6, 5\)"):
        fleet.update(x[1, :5])
    with pytest.raises(ValueError, match="present must be 6"):
        fleet.update(x[1], present=[True])
    with pytest.raises(ValueError, match="member 2: x must have shape"):
        fleet.update({1: x[1, 1], 2: x[1, 2, :3]})
    with pytest.raises(TypeError, match="must hold real numbers"):
        fleet.update(x[1].astype(str))
    for old, new in zip(before, cores(fleet), strict=True):
        np.testing.assert_array_equal(new, old)
    np.testing.assert_array_equal(fleet._streams.steps, steps)


def test_what_a_fleet_does_not_know_is_refused():
    with pytest.raises(ValueError, match="a fleet has start='warm'"):
        ut.Fleet(2, SHAPE, "paper")
    with pytest.raises(TypeError, match="not a setting"):
        ut.Fleet(2, SHAPE, windows=3)


def test_nothing_is_compiled_and_little_is_fetched_in_the_long_run(monkeypatch):
    x = streams(6, 20)
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    fetched, fetch = [], batching.fetch
    monkeypatch.setattr(batching, "fetch", lambda wants: fetched.append(wants.nbytes) or fetch(wants))
    programs = (batching.open_all, batching.work_some, batching.close_all, batching.restart)
    for t in range(len(x)):
        fetched.clear()
        fleet.update(x[t], present=np.arange(6) != t % 6)
        assert sum(fetched) <= 8 * (
            2 + 30 + 8 + 1
        )  # as if all wanted to be swept, moved and shrunk as often as allowed
        if t == 7:
            compiled = [program.count() for program in programs]
    sizes, works = 2, 3
    assert batching.work_some.count() <= compiled[1] + sizes * works
    assert [programs[i].count() for i in (0, 2, 3)] == [compiled[i] for i in (0, 2, 3)]


def test_a_member_that_goes_on_alone_knows_what_was_missing():
    fleet = ut.Fleet(6, SHAPE, **SETTINGS)
    x = np.random.default_rng(0).normal(size=(5, 6, *SHAPE))
    x[2, 1, 0, :3] = x[3, 1, 2, 2] = np.nan
    for slices in x:
        fleet.update(slices)
    assert fleet.extract(1).state.missing == (0, 3, 1, 0)
    assert fleet.extract(0).state.missing == (0, 0, 0, 0)


@pytest.mark.parametrize("as_bytes", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_member_travels_alone_to_another_fleet(as_bytes):
    x = streams(6, 6)
    fleet, other = ut.Fleet(6, SHAPE, **SETTINGS), ut.Fleet(2, SHAPE, **SETTINGS)
    for one in x[:4]:
        fleet.update(one)
    alone = fleet.extract(3)
    member = other.adopt(ut.from_bytes(alone.to_bytes()) if as_bytes else alone)
    assert member == 2
    assert other.members.tolist() == [0, 1, 2]
    for one in x[4:]:
        stayed, gone = fleet.update(one)[3], other.update({member: one[3]})[2]
        np.testing.assert_allclose(gone.mean, stayed.mean, rtol=1e-9)
        np.testing.assert_allclose(gone.outlier_probability, stayed.outlier_probability, atol=1e-9)
        assert gone.status.codes == stayed.status.codes


def test_what_cannot_be_a_member_is_refused_and_changes_nothing():
    fleet = ut.Fleet(2, SHAPE, **SETTINGS)
    before = fleet.to_bytes()
    for model, error, message in (
        (ut.Tracker(), TypeError, "must be a RobustCP"),
        (ut.RobustCP(**SETTINGS), ValueError, "has seen no slice"),
        (learned((5, 6), **SETTINGS), ValueError, "slices of shape"),
        (learned(SHAPE, **{**SETTINGS, "max_rank": 2}), ValueError, "settings of the fleet"),
    ):
        with pytest.raises(error, match=message):
            fleet.adopt(model)
    assert fleet.to_bytes() == before


def learned(shape, **settings):
    model = ut.RobustCP(**settings)
    model.update(np.ones(shape))
    return model
