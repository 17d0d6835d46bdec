"""A shard against single models, late rows, silence, bytes and versions; without any engine."""

import numpy as np
import pandas
import pytest

import undertow as ut
from undertow.cluster import frames, places, versions
from undertow.cluster.places import SEPARATOR
from undertow.cluster.plan import plan
from undertow.cluster.shard import END, Shard
from undertow.serialization.container import CheckpointError

SHAPE = (6, 5)
MODEL = {"max_rank": 3, "window": 4}


def a_plan(**more):
    model = more.pop("model", None) or ut.RobustCP(**MODEL)
    return plan("stream", "time", more.pop("modes", SHAPE), "value", model, dates=False, **more)


def slices(streams=3, count=6, seed=0):
    draw = np.random.default_rng(seed)
    base = draw.normal(size=(streams, 6, 1)) * draw.normal(size=(streams, 1, 5)) * 3
    x = base * (1 + 0.1 * np.arange(count)[:, None, None, None]) + 0.1 * draw.normal(size=(count, streams, *SHAPE))
    x[draw.random(x.shape) < 0.1] = np.nan
    return x


def give(shard, x, time, names=None):
    """One slice of some streams, as rows in any order."""
    for number, one in enumerate(x):
        order = np.random.default_rng(time).permutation(one.size)
        name = f"s{number}" if names is None else names[number]
        shard.add([name] * one.size, [time] * one.size, order, one.ravel()[order])


@pytest.mark.slow
def test_streams_get_what_single_models_would_give_them():
    x, shard, found = slices(), Shard(a_plan()), []
    for time, one in enumerate(x):
        give(shard, one, time)
        found.append(shard.learn(None))
    found.append(shard.learn(END))
    singles = {f"s{number}": ut.RobustCP(**MODEL) for number in range(3)}
    assert [len(one) for one in found] == [0, 3, 3, 3, 3, 3, 3]
    for time, done in enumerate(found[1:]):
        for row, name in enumerate(done.stream):
            single = singles[name].update(x[time, int(name[1])])
            assert done.time[row] == time
            for field in ("mean", "std", "outlier_probability"):
                np.testing.assert_allclose(
                    getattr(done, field)[row], getattr(single, field).ravel(), rtol=2e-3, atol=2e-3
                )
            assert done.status[row] == single.status.codes


def coming(names, time, stream="s"):
    """Rows of one slice as an engine hands them over: labels in place of entries."""
    pairs = [(row, column) for row in names for column in "abcde"]
    value = [float(int(row[1:]) * 10 + "abcde".index(column) + np.sin(time)) for row, column in pairs]
    entry = [row + SEPARATOR + column for row, column in pairs]
    return pandas.DataFrame({"ut_stream": stream, "ut_time": time, "ut_entry": entry, "ut_value": value})


def grown(model=None, **more):
    return Shard(a_plan(modes={"src": 6, "dst": list("abcde")}, model=model, **more))


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, pytest.param(ut.Tracker(), marks=pytest.mark.full)])
def test_labels_come_and_go_in_every_stream_by_itself(model, caplog, monkeypatch):
    waited, forget = [], ut.Incidents.forget
    monkeypatch.setattr(
        ut.Incidents, "forget", lambda self, mode, rows: waited.append((mode, *rows)) or forget(self, mode, rows)
    )
    shard, other, found = grown(model, ttl=3, false_alarms="1/1000"), None, []
    for time in range(12):
        names = ["r1", "r2", *(["r3"] if time > 3 else []), *(["r4", "r5", "r6"] if time < 4 else ["r7"])]
        for kept in (shard,) if other is None else (shard, other):
            frames.add(kept, coming(names, time))
            frames.add(kept, coming(["x1"], time, stream="t"))
            found.append(kept.learn(None)) if kept is shard else other.learn(None)
        if time == 5:  # through bytes, it goes on in the same way
            other = Shard.from_bytes(shard.to_bytes(), shard.plan)
    ended, again = shard.learn(END), other.learn(END)
    assert ended.labels == again.labels
    assert sorted(waited) == 2 * [(0, 2)] + 2 * [(0, 3)] + 2 * [(0, 4)]  # nobody waits for r4, r5 and r6 any more
    np.testing.assert_array_equal(ended.mean, again.mean)
    told = [one for done in [*found, ended] for one in zip(done.stream, done.time, done.labels, strict=True)]
    own = {time: labels for name, time, labels in told if name == "s"}
    assert own[0][0] == ("r1", "r2", "r4", "r5", "r6", None)
    assert own[4][0] == ("r1", "r2", "r4", "r5", "r6", "r3")  # r7 finds no place as long as the others are not retired
    assert own[8][0] == ("r1", "r2", "r7", None, None, "r3")
    assert own[8][1] == tuple("abcde")
    assert told[-1][0] == "t"
    assert told[-1][2][0][:2] == ("x1", None)
    assert shard.dropped["full"] == 15
    assert (
        "5 rows have a label that modes does not name, or does not allow beside the others, and were dropped, 15 so far"
        in caplog.text
    )
    (row,) = (row for row, name in enumerate(ended.stream) if name == "s")
    mean = ended.mean[row].reshape(6, 5)
    np.testing.assert_allclose(mean[2], 70 + np.arange(5), atol=6)  # of r7, not of r4 who was there before


@pytest.mark.slow
def test_bytes_go_on_as_if_nothing_had_happened():
    x, kept, other = slices(), Shard(a_plan(false_alarms="1/1000")), Shard(a_plan(false_alarms="1/1000"))
    for time, one in enumerate(x):
        give(kept, one, time)
        give(other, one, time)
        other = Shard.from_bytes(other.to_bytes(), other.plan)
        a, b = kept.learn(None), other.learn(None)
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.stream, b.stream)
        other = Shard.from_bytes(other.to_bytes(), other.plan)


@pytest.mark.slow
def test_many_slices_at_once_are_learned_in_the_order_of_their_times():
    x, one_by_one, at_once = slices(), Shard(a_plan()), Shard(a_plan())
    for time in reversed(range(len(x))):
        give(at_once, x[time], time)
    for time, one in enumerate(x):
        give(one_by_one, one, time)
        last = one_by_one.learn(time)
    done = at_once.learn(END)
    assert done.time.tolist() == np.repeat(np.arange(len(x)), 3).tolist()
    np.testing.assert_allclose(done.mean[-3:], last.mean)


@pytest.mark.slow
def test_late_rows_and_unknown_labels_are_counted_and_change_nothing(caplog):
    x, shard, clean = slices(), Shard(a_plan()), Shard(a_plan())
    for time, one in enumerate(x[:3]):
        give(shard, one, 10 * time)
        give(clean, one, 10 * time)
        shard.add(["s0", "s0"], [10 * time, 10 * time], [-1, 30], [1e9, 1e9])
        if time:
            give(shard, 1e6 + one, 5)  # after a watermark of 5 and more
        a, b = shard.learn(10 * time + 5), clean.learn(10 * time + 5)
        np.testing.assert_array_equal(a.mean, b.mean)
    assert shard.dropped == {"late": 2 * 3 * 30, "unknown": 6, "full": 0}
    assert "180 rows" not in caplog.text
    assert "came after their slice was complete and were dropped" in caplog.text
    assert "have a label that modes does not name" in caplog.text


@pytest.mark.slow
def test_a_silent_stream_is_forgotten_and_starts_anew():
    x, shard = slices(), Shard(a_plan(ttl=2, false_alarms="1/1000"))
    give(shard, x[0], 0)
    for time in (1, 2, 3):
        give(shard, x[time, :2], time)
        shard.learn(None)
    assert shard.names.tolist() == ["s0", "s1"]  # s2 was heard of at 0, more than 2 before 3
    assert len(Shard.from_bytes(shard.to_bytes(), shard.plan)) == 2
    give(shard, x[4], 4)
    assert shard.names.tolist() == ["s0", "s1", "s2"]
    done = shard.learn(END)
    fresh = ut.RobustCP(**MODEL).update(x[4, 2])
    np.testing.assert_allclose(done.mean[done.stream == "s2"][0], fresh.mean.ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_silence_does_not_depend_on_what_comes_together():
    x, found = slices(), []
    for together in (1, 2, 6):
        shard, parts = Shard(a_plan(ttl=2, false_alarms="1/1000")), []
        for time, one in enumerate(x):
            give(shard, one[:2] if time in (1, 2, 3) else one, time)
            if time % together == together - 1:
                parts.append(shard.learn(None))
        shard = Shard.from_bytes(shard.to_bytes(), shard.plan)
        parts.append(shard.learn(END))
        rows = [row for one in parts for row in zip(one.stream, one.time, one.mean, strict=True)]
        found.append(np.stack([mean for _, _, mean in sorted(rows, key=lambda row: row[:2])]))
    assert len(found[0]) == 6 + 6 + 3
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-4, atol=1e-4)


def test_rows_that_cannot_be_used_make_no_stream():
    shard = Shard(a_plan(ttl=5))
    shard.learn(10)
    shard.add(["late", "unknown"], [10, 11], [0, -1], [1.0, 1.0])
    assert len(shard) == 0
    assert shard.dropped == {"late": 1, "unknown": 1, "full": 0}
    assert shard.due is None


def test_a_packed_slice_that_is_null_is_missing_and_one_of_another_size_refused():
    pandas, shard = pytest.importorskip("pandas"), Shard(a_plan(modes=(2, 2)))
    rows = {"ut_stream": ["s"] * 2, "ut_time": [1, 2], "ut_entry": [0, 0]}
    frames.add(shard, pandas.DataFrame({**rows, "ut_value": [[1, None, 2, 3], None]}))
    assert [len(shard), len(shard._waiting), int(np.isnan(shard._waiting.value).sum())] == [1, 8, 5]
    with pytest.raises(ValueError, match=r"packed slice must have 4 entries, as modes=.* says, got 3"):
        frames.add(shard, pandas.DataFrame({**rows, "ut_value": [[1, 2, 3], None]}))
    assert len(shard._waiting) == 8


def test_a_shard_of_silence_is_empty():
    shard = Shard(a_plan())
    assert len(shard.learn(None)) == 0
    assert len(Shard.from_bytes(shard.to_bytes(), shard.plan)) == 0


def test_another_version_is_converted_or_refused(monkeypatch):
    kept, now = Shard(a_plan()).to_bytes(), versions.STATE_VERSION
    monkeypatch.setattr(versions, "STATE_VERSION", now + 1)
    with pytest.raises(CheckpointError, match=f"version {now}, this Undertow reads {now + 1}"):
        Shard.from_bytes(kept, a_plan())
    monkeypatch.setitem(versions.CONVERTERS, now, lambda content: ({**content[0], "dropped": {"late": 7}}, content[1]))
    assert Shard.from_bytes(kept, a_plan()).dropped["late"] == 7
    monkeypatch.setattr(versions, "STATE_VERSION", 0)
    with pytest.raises(CheckpointError, match="upgrade undertow"):
        Shard.from_bytes(kept, a_plan())


def test_a_state_of_another_plan_or_damaged_is_refused():
    kept = Shard(a_plan()).to_bytes()
    with pytest.raises(CheckpointError, match=r"made with shape=\[6, 5\]"):
        Shard.from_bytes(kept, a_plan(modes=(5, 6)))
    with pytest.raises(CheckpointError, match="model='cp'"):
        Shard.from_bytes(kept, a_plan(model=ut.Tracker()))
    for damaged in (b"", kept[:-3], kept[:40] + b"x" + kept[41:]):
        with pytest.raises(CheckpointError, match="damaged"):
            Shard.from_bytes(damaged, a_plan())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"modes": {"src": []}}, ValueError, "each label once"),
        ({"modes": {"src": ["a", "a"]}}, ValueError, "each label once"),
        ({"modes": "src"}, ValueError, "modes must be"),
        ({"modes": (3, 0)}, ValueError, "modes must be"),
        ({"modes": {"src": 0}}, ValueError, "allow 1 to 4096 labels at a time, got 0 for 'src'"),
        ({"modes": {"src": 10**6}}, ValueError, "allow 1 to 4096 labels at a time, got 1000000"),
        ({"model": 3}, TypeError, "must be an undertow.Tracker"),
        ({"model": ut.Tracker(believed_after=3)}, ValueError, "leave believed_after out"),
        ({"model": ut.Tracker(grow=True)}, ValueError, "leave grow out"),
        ({"model": ut.RobustCP(start="svd")}, ValueError, "start='warm'"),
        ({"false_alarms": "1/day"}, ValueError, "times that are dates"),
        ({"false_alarms": "often"}, ValueError, "false_alarms must be"),
    ],
)
def test_bad_plans_are_refused_in_a_sentence(given, error, message):
    with pytest.raises(error, match=message):
        a_plan(**given)


@pytest.mark.slow
def test_a_model_that_has_seen_slices_is_refused():
    model = ut.RobustCP(**MODEL)
    model.update(np.ones(SHAPE))
    with pytest.raises(ValueError, match="model must be new"):
        a_plan(model=model)


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, pytest.param(ut.Tracker(), marks=pytest.mark.full)])
def test_slices_grow_with_their_labels_and_others_notice_nothing(model):
    """In sizes of a ladder, through bytes too; what is said of the other streams stays as it was, to rounding."""
    plain, shard = grown(model, false_alarms="1/1000"), grown(model, false_alarms="1/1000")
    draw = np.random.default_rng(0)
    shapes = []
    for time in range(14):
        own = coming(["x1", "x2"], time, stream="t")
        own["ut_value"] += draw.normal(size=len(own))
        more = coming([f"r{row}" for row in range(1, 2 + time // 3)], time)
        frames.add(plain, own)
        frames.add(shard, pandas.concat([own, more]))
        expected, found = plain.learn(None), shard.learn(None)
        shapes.append(shard.shape[0])
        if time == 8:
            shard = Shard.from_bytes(shard.to_bytes(), shard.plan)
        if not len(expected):
            continue
        (here,) = np.flatnonzero(found.stream == "t")
        assert found.labels[here][0][:2] == ("x1", "x2")
        assert len(found.labels[here][0]) == shard.shape[0]
        for name in ("mean", "std"):
            one = getattr(expected, name)[0].reshape(plain.shape)[:2]
            other = getattr(found, name)[here].reshape(shard.shape)[:2]
            np.testing.assert_allclose(other, one, rtol=2e-3, atol=2e-3, err_msg=f"{name} at {time}")
    assert plain.shape == (2, 5)
    assert shapes == [1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 6]


def test_a_million_labels_are_bounded(monkeypatch):
    """Combinations that wait, and labels that have a place; whoever comes later is dropped and counted."""
    monkeypatch.setattr(places, "MOST_WAITING", 7)
    shard = grown()
    frames.add(shard, coming([f"r{row}" for row in range(1, 4)], 0))
    assert len(shard._waiting) == 7
    assert shard.dropped["unknown"] == 8
