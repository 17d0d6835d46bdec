"""One class of results for single streams, fleets and what is not computed yet; no model is needed for that."""

import copy
import pickle
from concurrent.futures import Future

import numpy as np
import pytest

import undertow as ut
from undertow.diagnostics import Flags
from undertow.engine.output import Output
from undertow.inputs.scaling import Scaling
from undertow.model.report import Report

CONFIG = ut.make_config(max_rank=3, window=4)
ARRAYS = ("mean", "low_rank", "std", "low_rank_std", "outliers", "outlier_probability")


def report(shape, flags=0, members=()):
    values = np.arange(np.prod((*members, *shape)), dtype=np.float32).reshape(*members, *shape)
    number = np.ones(members, np.float32)
    return Report(
        low_rank=values,
        low_rank_variance=np.full_like(values, 9.0),
        level=0 * number,
        noise_variance=np.full_like(values, 16.0),
        outliers=-values,
        outlier_probability=np.full_like(values, 0.25),
        rank=np.full(members, 2, np.int32),
        usual_noise=4 * number,
        iterations=np.full(members, 7, np.int32),
        elbo=-number,
        flags=np.full(members, flags, np.int32),
    )


def single(unit=10.0, **changes):
    return Output(CONFIG, Scaling.of(CONFIG, unit), (report((2, 3), **changes),))


def fleet():
    """Three members in the rows 3, 0 and 1 of two chunks of two; the second was absent."""
    units = np.array([1.0, 10.0, 100.0]).reshape(3, 1, 1)
    chunks = report((2, 3), members=(2,)), report((2, 3), members=(2,), flags=Flags.EMPTY.value)
    output = Output(CONFIG, Scaling.of(CONFIG, units), chunks, rows=np.array([3, 0, 1]))
    return ut.Result(output, members=np.array([4, 5, 9]), present=np.array([True, False, True]))


def test_a_single_result_is_in_units_of_the_data():
    result = ut.Result(single())
    np.testing.assert_allclose(result.mean, 10 * np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(result.low_rank, result.mean)  # there are no levels
    assert (result.std == 50).all()
    assert (result.low_rank_std == 30).all()
    np.testing.assert_allclose(result.outliers, -result.mean)
    assert (result.rank, result.iterations, result.elbo, result.noise_std) == (2, 7, -1.0, 20.0)
    assert (result.flags, result.status.codes, result.indices) == (Flags.NONE, (), None)
    assert result.settings["max_rank"] == 3
    assert repr(result) == "Result(rank=2, noise_std=20, status='ok')"
    assert result


def test_a_single_result_has_no_members():
    result = ut.Result(single())
    assert result.members is None
    for ask in (len, lambda result: result[0]):
        with pytest.raises(TypeError, match="for results of a fleet, got the result of a single stream"):
            ask(result)


def test_what_is_full_below_max_rank_is_not_full():
    assert ut.Result(single(flags=Flags.RANK_FULL.value)).status.codes == ()


def test_results_of_a_fleet_have_members_first():
    result = fleet()
    assert len(result) == 3
    assert result.mean.shape == (3, 2, 3)
    np.testing.assert_allclose(result.mean[0], np.arange(6, 12).reshape(2, 3))
    np.testing.assert_allclose(result.mean[2], 100 * np.arange(6, 12).reshape(2, 3))
    for name in ARRAYS:
        assert np.isnan(getattr(result, name)[1]).all()
    assert result.rank.tolist() == [2, -1, 2]
    assert result.iterations.tolist() == [7, -1, 7]
    np.testing.assert_array_equal(result.noise_std, [2, np.nan, 200])
    assert [status.codes for status in result.status] == [("EMPTY",), (), ()]
    assert result.rank.dtype == result.flags.dtype == np.int32
    assert repr(result) == "Result(members=3, present=2)"


def test_what_fleets_of_cp_models_do_not_keep_is_said():
    with pytest.raises(
        ValueError, match="explain needs the slice as it came, which fleets of CP models do not keep: use"
    ):
        fleet()[2].explain((0, 0))


def test_one_member_of_a_fleet_has_a_result_of_its_own():
    result = fleet()
    one = result[0]
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(result, name)[0])
    assert (one.rank, one.iterations, one.status.codes, one.members) == (2, 7, ("EMPTY",), None)
    assert isinstance(one.noise_std, float)
    assert one.settings == result.settings
    with pytest.raises(ValueError, match="member 5 was absent and has no result"):
        result[1]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
def test_copies_and_pickles_hold_what_was_computed(again):
    pending = Future()
    pending.set_result(ut.Result(single()))
    for result in (ut.Result(single()), ut.Result(pending), fleet(), fleet()[2]):
        twin = again(result)
        np.testing.assert_array_equal(twin.mean, result.mean)
        np.testing.assert_array_equal(twin.rank, result.rank)


def test_a_pending_result_raises_what_went_wrong():
    pending = Future()
    pending.set_exception(MemoryError("too large"))
    result = ut.Result(pending)
    with pytest.raises(MemoryError, match="too large"):
        _ = result.mean
