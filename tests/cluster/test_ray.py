"""Fleets on Ray: actors killed, the job killed; without Ray: its absence, in a sentence."""

import os
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import streams_of_tests as streams

import undertow as ut
from undertow.serialization.container import CheckpointError

HERE = Path(__file__).parent


def test_what_is_absent_is_a_sentence_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "undertow.cluster.ray", raising=False)
    with pytest.raises(ImportError, match=r"undertow.ray needs ray: pip install 'undertow\[ray\]'"):
        _ = ut.ray


def applied(tables, folder, kind="cp", **more):
    given = {"modes": streams.MODES, "model": streams.model(kind), "folder": folder, "every": 3, **streams.NAMES}
    return ut.ray.apply(tables, **{**given, **more})


def as_one_process(parts, tables, kind):
    """Row for row, to rounding."""
    pandas = import_module("pandas")
    found = pandas.concat(parts).sort_values(["router", "at"], ignore_index=True)
    wanted = streams.as_a_worker(tables, kind, shards=2)
    assert found.router.tolist() == wanted.ut_stream.tolist()
    assert found["at"].astype("datetime64[us]").astype(np.int64).tolist() == wanted.ut_time.tolist()
    for name, away in (("mean", 1e-3), ("std", 5e-3), ("outlier_probability", 1e-3)):
        ours, theirs = (np.stack(one[name].tolist()) for one in (found, wanted))
        np.testing.assert_allclose(ours, theirs, rtol=away, atol=1e-3, err_msg=name)


@pytest.fixture(scope="module")
def ray():
    found = pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE)]))
        found.shutdown()  # of a test before that started one
        found.init(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False, log_to_driver=False)
        yield found
        found.shutdown()


def test_shards_of_another_number_are_refused(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    (tmp_path / "shard-00000-of-00003-000000000002.state").write_bytes(b"")
    with pytest.raises(CheckpointError, match="now there are 2 shards"):
        applied([], tmp_path, shards=2)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "count", "slices"), [("cp", 500, 8), ("tracker", 24, 6)])
def test_an_actor_killed_in_mid_stream_goes_on_exactly(ray, tmp_path, kind, count, slices):
    tables = streams.rows(count, slices)
    parts, killed = [], 0
    for offset, found in applied(tables, tmp_path, kind):
        parts.append(found)
        assert offset == len(parts) - 1
        if offset in (1, 4):  # before the first checkpoint, and between two
            own = psutil.Process().children(recursive=True)
            owners = [one for one in own if one.status() != "zombie" and one.cmdline()[0].startswith("ray::_Owner")]
            owners[killed % len(owners)].kill()
            killed += 1
    assert killed == 2
    as_one_process(parts, tables, kind)


@pytest.mark.full
def test_a_job_that_stopped_goes_on_after_its_last_checkpoint(ray, tmp_path):
    tables = streams.rows(20, 8)
    kept = {}
    for offset, found in applied(tables, tmp_path):
        kept[offset] = found
        if offset == 4:  # the last checkpoint is that of offset 2
            break
    again = dict(applied(lambda first: iter(tables[first:]), tmp_path))
    assert sorted(again) == [3, 4, 5, 6, 7, 8]
    as_one_process(({**kept, **again}).values(), tables, "cp")


@pytest.mark.full
def test_an_answer_lost_after_its_checkpoint_is_given_again(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    from undertow.cluster import frames
    from undertow.cluster import ray as module
    from undertow.cluster.plan import plan

    made = plan(modes=streams.MODES, model=streams.model("cp"), **streams.NAMES)
    tables = [frames.numbered(one, made) for one in streams.rows(3, 4)]
    monkeypatch.setattr(module, "_restarted", lambda: False)
    owner = module._Owner(made, str(tmp_path), (0, 1), -1, None, 0)
    for offset in range(3):
        told = owner.step(offset, tables[offset], offset % 2 == 0)
    monkeypatch.setattr(module, "_restarted", lambda: True)
    other = module._Owner(made, str(tmp_path), (0, 1), -1, None, 0)
    assert other.back(3) == 2
    assert other.back(2) == 0
    for offset in (1, 2):
        again = other.step(offset, tables[offset], offset % 2 == 0)
    np.testing.assert_array_equal(np.stack(again["mean"]), np.stack(told["mean"]))
    ends = [other.step(3, None, False) for _ in range(2)]  # asked twice, if the first answer was lost
    assert len(ends[0]) == 3
    np.testing.assert_array_equal(*(np.stack(one["mean"]) for one in ends))
    with pytest.raises(ValueError, match="batch 3 is the next one, got 7"):
        other.step(7, tables[3], False)


@pytest.mark.slow
@pytest.mark.parametrize("refused", [0, 20])
def test_an_actor_started_again_learns_what_it_has_lost(tmp_path, monkeypatch, refused):
    """Ray gives it the next batch then, as if it had lost nothing; until it has started, it refuses everything."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    from undertow.cluster import frames
    from undertow.cluster import ray as module
    from undertow.cluster.plan import plan

    made = plan(modes=streams.MODES, model=streams.model("cp"), **streams.NAMES)
    tables = [frames.numbered(one, made) for one in streams.rows(3, 4)]

    unavailable = iter([module.ray.exceptions.ActorUnavailableError("The actor is restarting.", None)] * refused)

    def remote(method):
        def asked(*arguments):
            try:
                return next(unavailable, None) or method(*arguments)
            except ValueError as error:
                return error

        return SimpleNamespace(remote=asked)

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "_restarted", lambda: True)
    monkeypatch.setattr(module.ray, "get", get)
    monkeypatch.setattr(module.clock, "sleep", lambda seconds: None)
    owner, other = (module._Owner(made, str(tmp_path / name), (0, 1), -1, None, 0) for name in "ab")
    wanted = [owner.step(offset, tables[offset], False) for offset in range(3)][-1]
    job = module._Job.__new__(module._Job)
    job._actors = [SimpleNamespace(step=remote(other.step), back=remote(other.back))]
    job._since, job._every = {offset: [tables[offset]] for offset in range(3)}, 10
    found = job._answer(0, 2, job._ask(0, 2))
    np.testing.assert_array_equal(np.stack(found["mean"]), np.stack(wanted["mean"]))


def test_actors_that_share_a_device_share_its_memory(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    from undertow.cluster import ray as module

    monkeypatch.setattr(module, "_restarted", lambda: False)
    monkeypatch.setattr(os, "environ", {})
    made = module.plan(modes=streams.MODES, model=streams.model("cp"), **streams.NAMES)
    for gpus, fraction in ((1, None), (0.5, "0.450")):
        module._Owner(made, str(tmp_path), (0, 1), -1, None, gpus)
        assert os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION") == fraction


def test_durations_reach_the_shards_in_microseconds(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'undertow[ray]'")
    from undertow.cluster import ray as module

    def job(made, folder, shards, every, gpus, delay):
        return SimpleNamespace(run=lambda batches: (made.ttl, delay))

    monkeypatch.setattr(module, "_Job", job)
    assert applied([], tmp_path, ttl="1 day", late="10 minutes") == (86400 * 10**6, 600 * 10**6)
    assert applied([], tmp_path, ttl=7, late=0, dates=False) == (7, 0)


@pytest.mark.full
def test_more_actors_than_cores_are_said(ray, tmp_path, caplog):
    applied([], tmp_path, shards=50)
    assert "50 actors need 50 CPUs, and the cluster has 2 now" in caplog.text
