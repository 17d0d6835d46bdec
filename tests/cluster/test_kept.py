"""A shard between two batches of an engine: in memory, in the store, after failures; without any engine."""

import numpy as np
import pytest

import undertow as ut
from undertow.cluster import kept, shard, versions
from undertow.cluster.plan import plan
from undertow.serialization.container import CheckpointError

MADE = plan("stream", "time", (6, 5), "value", ut.RobustCP(max_rank=3, window=4), dates=False)


class Value:
    """What pyspark's ValueState does."""

    def __init__(self):
        self.columns = None

    def exists(self):
        return self.columns is not None

    def get(self):
        return self.columns

    def update(self, columns):
        self.columns = columns

    def clear(self):
        self.columns = None


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(kept, "_live", type(kept._live)())
    return Value(), Value()


def batch(store, time):
    """What a task does: rows of one time of two streams, which complete those of the time before."""
    own = kept.taken(MADE, *store)
    x = np.random.default_rng(time).normal(size=60)
    own.add(["a"] * 30 + ["b"] * 30, [time] * 60, [*range(30)] * 2, x)
    found = own.learn(None)
    kept.keep(own, *store)
    return found


def test_a_worker_goes_on_with_what_it_has_in_memory_if_the_store_says_so(store, monkeypatch):
    batch(store, 0)
    read = []
    monkeypatch.setattr(shard.Shard, "from_bytes", lambda content, _: read.append(content))
    assert len(kept.taken(MADE, *store)) == 2
    assert not read
    assert kept.taken(MADE, *store) is None  # a task that failed has changed what was in memory
    assert read == [store[1].columns[0]]


@pytest.mark.slow
def test_a_batch_that_failed_is_learned_again_from_the_store(store):
    for time in range(3):
        batch(store, time)
    before = store[0].columns, store[1].columns
    lost = batch(store, 3)  # Spark goes back to the state before
    store[0].columns, store[1].columns = before
    again = batch(store, 3)
    assert again.time.tolist() == [2, 2]
    np.testing.assert_array_equal(again.mean, lost.mean)


def test_a_shard_without_streams_leaves_nothing(store):
    batch(store, 0)
    kept.keep(shard.Shard(MADE), *store)
    assert not store[0].exists()
    assert not store[1].exists()


def test_what_is_in_memory_is_bounded(store, monkeypatch):
    monkeypatch.setattr(kept, "MOST_LIVE", 3)
    for _ in range(5):
        batch((Value(), Value()), 0)
    assert len(kept._live) == 3


@pytest.mark.slow
def test_an_older_state_is_converted_and_a_newer_one_refused_before_anything_changes(store, monkeypatch):
    for time in range(2):
        batch(store, time)
    now = versions.STATE_VERSION
    monkeypatch.setattr(versions, "STATE_VERSION", now + 1)
    content = store[1].columns
    with pytest.raises(CheckpointError, match=f"version {now}, this Undertow reads {now + 1}"):
        batch(store, 2)
    assert store[0].columns[0] == now
    assert store[1].columns is content
    monkeypatch.setitem(versions.CONVERTERS, now, lambda content: content)
    kept._live.clear()  # a new version is a new process
    assert batch(store, 2).time.tolist() == [1, 1]
    assert store[0].columns[0] == now + 1
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="upgrade undertow everywhere"):
        batch(store, 3)
