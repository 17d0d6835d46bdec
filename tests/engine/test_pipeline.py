"""A model that learns in a thread has the results of one that does not."""

import copy
import pickle
import threading
from concurrent.futures import Future
from dataclasses import replace

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine import learner
from undertow.engine.pipeline import Demand
from undertow.inputs.scaling import Scaling
from undertow.lab.synthetic.streams import drifting
from undertow.model import platform

pytestmark = pytest.mark.slow
SETTINGS = {"max_rank": 3, "window": 4}


@pytest.fixture
def threaded(monkeypatch):
    device = replace(platform.ACCELERATOR, pipeline_entries=0)
    monkeypatch.setattr(platform, "current", lambda: device)


@pytest.fixture(scope="module")
def slices():
    return drifting((6, 5), 2, observed=0.7, slices=8, seed=1).values


def test_the_answers_are_the_same(slices, monkeypatch):
    plain = ut.RobustCP(**SETTINGS)
    expected = [plain.update(x) for x in slices]
    device = replace(platform.ACCELERATOR, pipeline_entries=0)
    monkeypatch.setattr(platform, "current", lambda: device)
    model = ut.RobustCP(**SETTINGS)
    results = [model.update(x) for x in slices]
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one.low_rank, other.low_rank)
        np.testing.assert_array_equal(one.outlier_probability, other.outlier_probability)
        assert (one.rank, one.elbo, str(one.status)) == (other.rank, other.elbo, str(other.status))
        assert one.settings == other.settings
        assert one.indices is None
    np.testing.assert_array_equal(model.reconstruct(2), plain.reconstruct(2))


@pytest.mark.usefixtures("threaded")
def test_what_was_asked_of_the_last_slices_is_copied_asynchronously(slices, monkeypatch):
    sent = []
    real = type(jax.numpy.zeros(1)).copy_to_host_async
    monkeypatch.setattr(type(jax.numpy.zeros(1)), "copy_to_host_async", lambda self: (sent.append(self), real(self)))
    model, counts = ut.RobustCP(**SETTINGS), []
    for number, x in enumerate(slices):
        result = model.update(x)
        (report,) = result._output.reports
        parts = [report.low_rank, report.outlier_probability, report.outliers]
        counts.append([any(one is part for one in sent) for part in parts])
        if number < 2:
            _ = result.low_rank, result.outlier_probability
    ahead_of_time = [number in range(2, 2 + Demand.RECENT) for number in range(len(slices))]
    assert counts == [[early, early, False] for early in ahead_of_time]


@pytest.mark.usefixtures("threaded")
def test_a_slice_is_scaled_once_before_it_is_learned(slices, monkeypatch):
    model = ut.RobustCP(**SETTINGS)
    model.update(slices[0])
    real, where = Scaling.scaled, []
    monkeypatch.setattr(
        Scaling, "scaled", lambda *given: (where.append(threading.current_thread().name), real(*given))[1]
    )
    for x in slices[1:]:
        _ = model.update(x).rank
    assert where == [threading.current_thread().name] * (len(slices) - 1)


@pytest.mark.usefixtures("threaded")
def test_bad_input_is_refused_immediately_and_changes_nothing(slices, tmp_path):
    model = ut.RobustCP(**SETTINGS)
    for x in slices[:4]:
        model.update(x)
    with pytest.raises(ValueError, match="must have shape"):
        model.update(slices[4].T)
    model.save(tmp_path / "state")
    again = ut.load(tmp_path / "state")
    np.testing.assert_array_equal(model.update(slices[4]).low_rank, again.update(slices[4]).low_rank)


@pytest.mark.usefixtures("threaded")
def test_a_step_that_fails_raises_when_next_asked(slices, monkeypatch):
    model = ut.RobustCP(**SETTINGS)
    for x in slices[:3]:
        model.update(x)
    before = copy.deepcopy(model)

    def broken(*_):
        raise MemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(learner, "step", broken)
        result = model.update(slices[3])
        with pytest.raises(MemoryError, match="no memory"):
            _ = result.rank
        with pytest.raises(MemoryError, match="no memory"):
            model.update(slices[3])
    np.testing.assert_array_equal(model.update(slices[3]).low_rank, before.update(slices[3]).low_rank)


@pytest.mark.usefixtures("threaded")
def test_copies_go_on_independently(slices):
    model = ut.RobustCP(**SETTINGS)
    for x in slices[:4]:
        result = model.update(x)
    for other in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        np.testing.assert_array_equal(other.low_rank, result.low_rank)
    first, second = copy.copy(model), copy.deepcopy(model)
    expected = [model.update(x).low_rank for x in slices[4:]]
    for twin in (first, second):
        for x, low_rank in zip(slices[4:], expected, strict=True):
            np.testing.assert_array_equal(twin.update(x).low_rank, low_rank)


@pytest.mark.usefixtures("threaded")
def test_an_interrupted_wait_loses_nothing(slices, monkeypatch):
    model, twin = ut.RobustCP(**SETTINGS), ut.RobustCP(**SETTINGS)
    for x in slices[:4]:
        model.update(x)
        twin.update(x)
    assert model.state.steps == twin.state.steps == 4  # nothing is left in the thread slowed down next
    real, may_go = learner.step, threading.Event()

    def slow(*given):
        may_go.wait(60)
        return real(*given)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(learner, "step", slow)
    model.update(slices[4])
    with monkeypatch.context() as patch:
        patch.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.update(slices[5])
    may_go.set()
    twin.update(slices[4])
    np.testing.assert_array_equal(model.update(slices[5]).low_rank, twin.update(slices[5]).low_rank)


@pytest.mark.usefixtures("threaded")
def test_fit_ends_when_the_last_slice_is_learned(slices, monkeypatch):
    model = ut.RobustCP(**SETTINGS).fit(slices[:3])
    real, calls = learner.step, []

    def last_fails(*given):
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError("no memory")
        return real(*given)

    before = model.reconstruct()
    monkeypatch.setattr(learner, "step", last_fails)
    with pytest.raises(MemoryError):
        model.partial_fit(slices[3:6])
    np.testing.assert_array_equal(model.reconstruct(), before)
