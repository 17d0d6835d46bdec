"""Streams that repeat themselves, streams that begin badly: one status, finite results, immediate recovery."""

import numpy as np
import pytest

import undertow as ut
from undertow.diagnostics import Flags, Status
from undertow.engine.history import Counts, History, digest, equal, judge
from undertow.inputs.dense import as_slice

SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4}
BAD_FIRST = {
    "large": np.full(SHAPE, 3e25),
    "tiny": np.full(SHAPE, 1e-12),
    "one entry": 1e-10 * (np.arange(30).reshape(SHAPE) == 7),
}


def stream(slices, seed=0, noise=0.1):
    """Rank 2 with noise."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    rows = 2 + rng.normal(size=(slices, 2))
    return np.einsum("ir,jr,tr->tij", left, right, rows) + noise * rng.normal(size=(slices, *SHAPE))


def frozen_stream(repeats=12):
    """Ten slices, then the tenth again and again, then three new ones."""
    x = stream(13)
    return np.concatenate([x[:10], np.repeat(x[9:10], repeats, axis=0), x[10:]])


def relative_error(result, x):
    return np.linalg.norm(result.mean - x) / np.linalg.norm(x)


def model_of(preset="default"):
    return ut.RobustCP(preset, **SMALL)


def assert_same(one, other):
    for name in ("mean", "std", "outliers", "outlier_probability"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.status == other.status


# The rules, without a model


def judged(slices, unit=1.0, learned=100, window=4):
    """Verdicts of a history that has seen all but the last."""
    history, found = History(), []
    for position, x in enumerate(slices):
        history, verdict = history.judge(as_slice(x), unit, min(learned, position) if learned else position, window)
        found.append(verdict)
    return found


def test_the_second_repeat_is_frozen_and_named():
    found = judged([[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [5.0, 4.0]])
    assert [bool(verdict.frozen) for verdict in found] == [False, False, False, True, True, False]
    assert [int(verdict.since) for verdict in found] == [-1, -1, -1, 1, 1, -1]


def test_gaps_are_not_repeats():
    assert not any(verdict.repeated for verdict in judged([[np.nan, np.nan]] * 6))


def test_a_stream_that_was_never_anything_else_is_learned_for_two_windows():
    found = judged([[1.0, 2.0]] * 12)
    assert [bool(verdict.frozen) for verdict in found] == [False] * 8 + [True] * 4
    assert all(verdict.repeated for verdict in found[2:])


def test_three_slices_that_agree_revise_the_unit():
    sizes = [1e-5, 2e-5, 1e-5]
    before, revised = Counts(seen=1), []
    for size in sizes:
        verdict = judge(before, False, size, 1.0, 1, 4)
        before = verdict.counts
        revised.append(bool(verdict.revised))
    assert revised == [False, False, True]


@pytest.mark.parametrize("sizes", [[1e-5, 1.0, 1e-5, 1e-5], [1e-5, 1e5, 1e-5], [1.0, 1.0, 1.0, 1e-5, 1e-5, 1e-5, 1e-5]])
def test_a_unit_is_kept_where_slices_disagree_or_have_confirmed_it(sizes):
    before = Counts(seen=1)
    for size in sizes:
        verdict = judge(before, False, size, 1.0, 1, 4)
        before = verdict.counts
        assert not verdict.revised


def test_equality_and_digest_look_at_values_and_mask():
    one = as_slice(np.array([0.0, 1.0, 2.0], np.float32))
    assert equal(one, as_slice([-0.0, 1.0, 2.0]))
    assert digest(one) == digest(as_slice([-0.0, 1.0, 2.0]))
    for other in ([0.0, 1.0, 3.0], [np.nan, 1.0, 2.0]):
        assert not equal(one, as_slice(other))
        assert digest(one) != digest(as_slice(other))


def test_the_status_names_the_slice():
    status = Status(Flags.REPEATED, since=7)
    assert status.ok
    assert str(status).startswith("the data repeat themselves since slice 7:")


# With models


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "fast"])
def test_a_frozen_stream_is_one_status_and_recovers(preset):
    x, model = frozen_stream(), model_of(preset)
    results = [model.update(one) for one in x]
    for result in results[11:22]:
        assert result.status.codes == ("REPEATED",)
        assert (result.status.ok, result.status.since) == (True, 9)
        assert not result.outlier_probability.any()
        assert not result.outliers.any()
    for result, one in zip(results[9:], x[9:], strict=True):
        assert relative_error(result, one) < 0.15
    assert not any((result.outlier_probability > 0.5).sum() > 2 for result in results[22:])
    assert f"{len(x)} slices" in repr(model)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 1e6, 1e15])
def test_a_jump_to_a_constant_is_finite_and_recovers(value):
    x, model = stream(14), model_of()
    for one in x[:10]:
        model.update(one)
    for position in range(12):
        result = model.update(np.full(SHAPE, value))
        assert np.isfinite(result.mean).all()
        assert np.isfinite(result.std).all()
        if position > 1:
            assert "REPEATED" in result.status.codes
            assert result.status.ok
            assert not result.outlier_probability.any()
    errors = [relative_error(model.update(one), one) for one in x[10:]]
    assert max(errors) < 0.3


@pytest.mark.slow
def test_a_constant_stream_loses_nothing():
    x = stream(1, noise=0.0)[0]
    x[0, 0] = np.nan
    model = model_of()
    results = [model.update(x) for _ in range(12)]
    assert relative_error(results[-1], np.where(np.isnan(x), results[-1].mean, x)) < 1e-4
    assert results[-1].std.min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("saved_after", [2, 12, 15])
def test_a_frozen_stream_goes_on_from_a_file(tmp_path, saved_after):
    x = frozen_stream()
    through, interrupted = model_of(), model_of()
    for one in x[:saved_after]:
        through.update(one)
        interrupted.update(one)
    interrupted.save(tmp_path / "model.ckpt")
    resumed = ut.load(tmp_path / "model.ckpt")
    for one in x[saved_after:]:
        assert_same(through.update(one), resumed.update(one))


@pytest.mark.slow
@pytest.mark.parametrize("bad", BAD_FIRST)
@pytest.mark.parametrize("factor", [1.0, 1e-7])
def test_a_bad_first_slice_is_forgotten(tmp_path, bad, factor):
    x = factor * np.concatenate([BAD_FIRST[bad][None], stream(12)])
    model = model_of()
    results = [model.update(one) for one in x[:3]]  # in the middle of the odd ones
    model.save(tmp_path / "model.ckpt")
    resumed = ut.load(tmp_path / "model.ckpt")
    for one in x[3:]:
        results.append(model.update(one))
        assert_same(results[-1], resumed.update(one))
    assert ["RESTARTED" in result.status.codes for result in results].index(True) == 3
    assert relative_error(results[-1], x[-1]) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("fill", [1e20, 9.969209968386869e36, 1e35, 1e36])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill_values_are_missing_and_said(fill, dtype):
    model = model_of()
    result = model.update(np.full(SHAPE, fill, dtype))
    assert set(result.status.codes) >= {"EMPTY", "FILL_VALUES"}
    assert result.status.ok
    x = stream(6)
    for one in x:
        result = model.update(one)
    assert relative_error(result, x[-1]) < 0.15
    assert "FILL_VALUES" not in result.status.codes


@pytest.mark.slow
@pytest.mark.parametrize("x", [np.full(SHAPE, np.nan), np.zeros(SHAPE)])
def test_std_is_never_0(x):
    result = model_of().update(x)
    assert result.std.min() > 0
    assert result.noise_std > 0


@pytest.mark.slow
@pytest.mark.full
def test_members_of_a_fleet_freeze_and_restart_one_by_one(tmp_path):
    frozen, lively = frozen_stream(), stream(25, seed=1)
    bad = np.concatenate([BAD_FIRST["tiny"][None], stream(24, seed=2)])
    filled = lively.copy()
    filled[3, 0, 0] = 1e20
    x = np.stack([frozen, lively, bad, filled], axis=1)
    fleet, singles = ut.Fleet(4, SHAPE, **SMALL), [model_of() for _ in range(4)]
    for time, slices in enumerate(x):
        if time in (2, 12):
            fleet.save(tmp_path / "fleet.ckpt")
            fleet = ut.Fleet.load(tmp_path / "fleet.ckpt")
        together = fleet.update(slices)
        alone = [model.update(one) for model, one in zip(singles, slices, strict=True)]
        assert [status.since for status in together.status] == [one.status.since for one in alone]
        for position, one in enumerate(alone):
            assert together[position].status == together.status[position]
            np.testing.assert_allclose(together.mean[position], one.mean, rtol=0.02, atol=0.02)
            if one.status.since is not None:
                assert not together.outlier_probability[position].any()
                assert together.status[position].codes == ("REPEATED",)
        assert ("RESTARTED" in together.status[2].codes) == (time == 3)
        assert ("FILL_VALUES" in together.status[3].codes) == (time == 3)
    assert relative_error(fleet.extract(0).update(frozen[-1]), frozen[-1]) < 0.15
