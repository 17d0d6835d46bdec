"""A model that learns in a thread of its own says the same as one that does not."""

import copy

import numpy as np
import pytest

import undertow as ut
from undertow import ahead, panel
from undertow.datasets.synthetic import drifting

SETTINGS = {"max_rank": 3, "window": 4}


@pytest.fixture
def threaded(monkeypatch):
    monkeypatch.setattr(ahead, "worth_a_thread", lambda: True)


@pytest.fixture(scope="module")
def slices():
    return drifting((6, 5), 2, observed=0.7, slices=8, seed=1).values


def test_the_answers_are_the_same(slices, monkeypatch):
    plain = ut.RobustCP("fixed", **SETTINGS)
    expected = [plain.update(x) for x in slices]
    monkeypatch.setattr(ahead, "worth_a_thread", lambda: True)
    model = ut.RobustCP("fixed", **SETTINGS)
    results = [model.update(x) for x in slices]
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one.low_rank, other.low_rank)
        np.testing.assert_array_equal(one.outlier_probability, other.outlier_probability)
        assert (one.rank, one.evidence, str(one.status)) == (other.rank, other.evidence, str(other.status))
        assert one.settings == other.settings
        assert one.indices is None
    np.testing.assert_array_equal(model.reconstruct(2), plain.reconstruct(2))


@pytest.mark.usefixtures("threaded")
def test_bad_input_is_refused_at_once_and_changes_nothing(slices, tmp_path):
    model = ut.RobustCP("fixed", **SETTINGS)
    for x in slices[:4]:
        model.update(x)
    with pytest.raises(ValueError, match="must have shape"):
        model.update(slices[4].T)
    model.save(tmp_path / "state")
    again = ut.load(tmp_path / "state")
    np.testing.assert_array_equal(model.update(slices[4]).low_rank, again.update(slices[4]).low_rank)


@pytest.mark.usefixtures("threaded")
def test_a_step_that_fails_says_so_to_whoever_asks_next(slices, monkeypatch):
    model = ut.RobustCP("fixed", **SETTINGS)
    for x in slices[:3]:
        model.update(x)
    before = copy.deepcopy(model)

    def broken(*_):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(panel, "learn", broken)
        result = model.update(slices[3])
        with pytest.raises(MemoryError, match="no room"):
            _ = result.rank
        with pytest.raises(MemoryError, match="no room"):
            model.update(slices[3])
    np.testing.assert_array_equal(model.update(slices[3]).low_rank, before.update(slices[3]).low_rank)
