"""Programs that are kept: found by the next process, the same to the last bit, and never in the way."""

import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from undertow.programs import identity, runtime
from undertow.programs.folder import Folder
from undertow.programs.program import Program, forget_all, program

X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
compiled: list[str] = []


@pytest.fixture(autouse=True, scope="module")
def counted():
    """What is compiled is counted, and JAX's own cache is out of the way."""

    def count(event, duration, fun_name="", **more):
        if event.endswith("backend_compile_duration"):
            compiled.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(count)
    with jax_cache(None):
        yield
    jax.monitoring.unregister_event_duration_listener(count)


@contextmanager
def jax_cache(path):
    before, least = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", path)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", before)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERTOW_CACHE", str(tmp_path / "programs"))
    compiled.clear()
    return Folder.of_user()


def toy(state, x, times=2, unused=None):
    """Sums, products and a transcendental function, so that the order of operations would show."""
    total = state["total"] + jnp.tanh(x @ x.T) @ x * times
    return {"total": total, "count": state["count"] + 1}, (total.sum(), x)


def fresh():
    return {"total": jnp.asarray(X), "count": jnp.zeros((), jnp.int32)}


def make():
    return program(static=["times"], donate=["state"])(toy)


def bits(tree):
    return [(leaf.dtype, leaf.shape, np.asarray(leaf).tobytes()) for leaf in jax.tree.leaves(tree)]


def ours():
    return [name for name in compiled if "toy" in name]


def test_what_was_compiled_is_found_and_gives_the_same_bits(folder):
    expected = jax.jit(toy)(fresh(), X)
    compiled.clear()
    first = make()(fresh(), X)
    assert len(ours()) == 1
    second = make()(fresh(), X)  # as a later process: it has loaded nothing
    assert len(ours()) == 1
    assert bits(first) == bits(second) == bits(expected)
    assert jax.tree.structure(first) == jax.tree.structure(second) == jax.tree.structure(expected)
    assert [leaf.aval for leaf in jax.tree.leaves(second)] == [leaf.aval for leaf in jax.tree.leaves(expected)]
    assert not any(leaf.committed for leaf in jax.tree.leaves((first, second)))


def test_a_donated_argument_is_used_up(folder):
    for _ in ("compiled", "loaded"):
        function, state, x = make(), fresh(), jnp.asarray(X)
        function(state, x)
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
        assert not x.is_deleted()
        with pytest.raises(RuntimeError, match="deleted"):
            function(state, x)


def test_shapes_types_and_static_arguments_are_programs_of_their_own(folder):
    function = make()
    with jax.enable_x64(True):
        double = {"total": jnp.asarray(X.astype(float)), "count": jnp.zeros((), jnp.int32)}
        assert function(double, X)[0]["total"].dtype == np.float64
    function(fresh(), X)
    function(fresh(), X, times=2)
    thrice = bits(function(fresh(), x=X, times=3))
    function(fresh(), X, unused=jnp.ones(3))
    assert function.count() == len(ours()) == 4
    assert bits(make()(fresh(), X, 3)) == thrice
    assert len(ours()) == 4


def test_numbers_of_the_host_are_taken_as_jit_takes_them(folder):
    def scaled(x, by, shift):
        return x * by + shift

    kept = program()(scaled)
    for by in (2, 2.5, True, np.float64(0.5), np.arange(4)):
        mine, plain = kept(X, by, 1.0), jax.jit(scaled)(X, by, 1.0)
        assert (mine.dtype, mine.weak_type) == (plain.dtype, plain.weak_type)
        np.testing.assert_array_equal(mine, plain)
    x = X.copy()
    later = kept(x, 1, 0.0)
    x[:] = -1
    np.testing.assert_array_equal(later, X)


def test_within_another_function_it_is_traced_with_it(folder):
    inner = program()(lambda x: jnp.sin(x).sum())
    np.testing.assert_allclose(jax.vmap(inner)(X), np.sin(X).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda x: inner(x) + 1)(X), np.sin(X).sum() + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(inner)(jnp.asarray(X)), np.cos(X), rtol=1e-6)
    assert inner.count() == 0


def test_a_batched_program_is_kept_too(folder):
    def batched(state, x):
        return jax.vmap(toy, in_axes=({"total": 0, "count": None}, 0))(state, x)

    states = {"total": jnp.stack([X, 2 * X]), "count": jnp.zeros((), jnp.int32)}
    first = program()(batched)(states, np.stack([X, X]))
    compiled.clear()
    second = program()(batched)(states, np.stack([X, X]))
    assert not compiled
    assert bits(first) == bits(second) == bits(jax.jit(batched)(states, np.stack([X, X])))


@pytest.mark.parametrize("damage", ["cut off", "changed", "not a program"])
def test_a_damaged_program_is_compiled_again_and_replaced(folder, damage, caplog):
    expected = bits(make()(fresh(), X))
    (file,) = folder.path.iterdir()
    sound = file.read_bytes()
    if damage == "cut off":
        file.write_bytes(sound[:-100])
    elif damage == "changed":
        file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    else:  # with a checksum that fits
        state = jax.tree.map(jnp.asarray, fresh())
        named = {"state": state, "x": jnp.asarray(X), "unused": None}
        leaves, tree = jax.tree.flatten(named)
        name = f"{toy.__module__}.{toy.__qualname__}"
        described = identity.described(name, {"times": 2}, tree, leaves, runtime.place(leaves))
        assert folder.read(described) is not None
        folder.write(described, b"nonsense")
    damaged = file.read_bytes()
    compiled.clear()
    with caplog.at_level(logging.DEBUG, "undertow.programs"):
        assert bits(make()(fresh(), X)) == expected
    assert len(ours()) == 1
    assert "damaged" in caplog.text or "cannot be loaded" in caplog.text
    assert file.read_bytes() != damaged
    make()(fresh(), X)
    assert len(ours()) == 1


def test_off_means_that_nothing_is_written_or_read(monkeypatch, folder, tmp_path):
    monkeypatch.setenv("UNDERTOW_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = bits(jax.jit(toy)(fresh(), X))
    compiled.clear()
    assert bits(make()(fresh(), X)) == bits(make()(fresh(), X)) == expected
    assert len(ours()) == 2
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_used_is_no_error(monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("UNDERTOW_CACHE", str(tmp_path / "file" / "programs"))
    with caplog.at_level(logging.DEBUG, "undertow.programs"):
        make()(fresh(), X)
    assert "cannot be kept" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_what_jax_does_not_offer_is_left_to_jit(monkeypatch, folder):
    def missing(*arguments):
        raise AttributeError("no such thing in this version of JAX")

    monkeypatch.setattr(runtime, "executable", missing)
    function = make()
    assert bits(function(fresh(), X)) == bits(jax.jit(toy)(fresh(), X))
    assert not folder.path.exists()


def test_callbacks_and_debugging_are_left_to_jit(folder):
    seen = []

    def talking(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x.sum())
        return x + 1

    function = program()(talking)
    jax.block_until_ready(function(jnp.ones(3)))
    jax.effects_barrier()
    assert seen == [3.0]
    assert not folder.path.exists()

    def asking(x):
        return jax.pure_callback(lambda value: np.asarray(value) + 1, x, x)

    function = program()(asking)  # no effect, but its callback is alive only as long as what JAX compiled
    assert float(function(jnp.asarray(1.0))) == float(function(jnp.asarray(1.0))) == 2
    assert not folder.path.exists()
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        program()(jnp.log)(jnp.asarray(-1.0))
    with jax.disable_jit():
        assert float(program()(lambda x: x if x > 0 else -x)(jnp.asarray(-2.0))) == 2


def test_the_settings_of_jax_stay_as_they_are(folder):
    before = dict(jax.config.values)
    make()(fresh(), X)
    make()(fresh(), X)
    assert dict(jax.config.values) == before


def test_what_came_out_of_the_cache_of_jax_stays_there(folder, tmp_path):
    """It would load, and fail when it runs."""
    with jax_cache(str(tmp_path / "jax")):
        expected = bits(make()(fresh(), X))
        (file,) = folder.path.iterdir()
        file.unlink()
        assert bits(make()(fresh(), X)) == expected
        assert not list(folder.path.iterdir())
        assert bits(make()(fresh(), X)) == expected


def test_a_program_that_loads_and_fails_is_not_kept(monkeypatch, folder):
    make()(fresh(), X)

    def failing(leaves):
        raise RuntimeError("a kernel was not found")

    function = make()
    with monkeypatch.context() as patched:
        patched.setattr(runtime, "loaded", lambda stored, place: failing)
        with pytest.raises(RuntimeError, match="a kernel was not found"):
            function(fresh(), X)
    assert not list(folder.path.iterdir())
    compiled.clear()
    function(fresh(), X)
    assert len(ours()) == 1
    assert len(list(folder.path.iterdir())) == 1


def test_threads_that_need_the_same_compile_it_once(monkeypatch, folder):
    function, results = make(), []
    threads = [threading.Thread(target=lambda: results.append(bits(function(fresh(), X)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ours()) == 1
    assert len(results) == 4
    assert all(one == results[0] for one in results)


def test_a_program_says_how_large_it_may_be_to_be_compiled_quickly(monkeypatch, folder):
    seen, usual = [], runtime.compiled
    monkeypatch.setattr(runtime, "compiled", lambda *given: seen.append(given[2]) or usual(*given))
    make()(fresh(), X)
    program(small=7)(toy)(fresh(), X, times=jnp.float32(2))
    assert seen == [runtime.SMALL, 7]


def test_programs_can_be_let_go(folder):
    function = make()
    function(fresh(), X)
    forget_all()
    assert function.count() == 0
    function(fresh(), X)
    assert len(ours()) == 1


def test_wrong_arguments_are_refused_as_by_jit():
    function = make()
    for args, kwargs in (((fresh(),), {}), ((fresh(), X, 2, None, 5), {}), ((fresh(), X), {"x": X}), ((), {"y": 1})):
        with pytest.raises(TypeError):
            function(*args, **kwargs)
    assert function.count() == 0


def test_it_can_be_looked_at_as_jit_can():
    function = make()
    assert isinstance(function, Program)
    assert function.__doc__ == toy.__doc__
    assert "tanh" in function.lower(fresh(), X).as_text()


SCRIPT = """
import json, sys
import jax, numpy as np
count = [0]
def counted(event, duration, **more):
    count[0] += event.endswith(("backend_compile_duration", "jaxpr_trace_duration"))
jax.monitoring.register_event_duration_secs_listener(counted)
import undertow as ut
x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
model = ut.Tracker() if sys.argv[1] == "tracker" else ut.RobustCP(max_rank=3, window=4)
results = [model.update(x + shift) for shift in range(6)]
numbers = [getattr(result, name).tobytes().hex() for result in results for name in ("mean", "std", "outliers")]
print(json.dumps([count[0], numbers]))
"""


def started(cache, model):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"UNDERTOW_CACHE": str(cache)}
    command = [sys.executable, "-c", SCRIPT, model]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def ended(process):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@pytest.mark.slow
def test_a_second_process_traces_and_compiles_nothing(tmp_path):
    together = [started(tmp_path / "programs", "cp") for _ in range(2)]
    (first, numbers), (other, same) = map(ended, together)
    assert min(first, other) > 0
    count, again = ended(started(tmp_path / "programs", "cp"))
    assert count == 0
    assert numbers == same == again


@pytest.mark.full
def test_a_tracker_in_a_second_process_gives_the_same_bits(tmp_path):
    """It lowers nothing, so all that its programs call must have been made ready."""
    first, numbers = ended(started(tmp_path / "programs", "tracker"))
    count, again = ended(started(tmp_path / "programs", "tracker"))
    assert first > count == 0
    assert again == numbers


def test_a_prepared_program_is_not_made_again_and_not_run():
    made = []

    @program(donate=["x"])
    def doubled(x):
        made.append(x)
        return 2 * x

    x = jnp.ones(3)
    doubled.prepare(x)
    assert len(made) == 1
    assert not x.is_deleted()
    assert doubled(x).tolist() == [2, 2, 2]
    assert len(made) == 1


def test_who_needs_a_program_that_is_being_prepared_waits_for_it():
    made, begun, go_on = [], threading.Event(), threading.Event()

    @program()
    def doubled(x):
        made.append(x)
        begun.set()
        assert go_on.wait(60)
        return 2 * x

    x = np.ones(3, np.float32)
    preparing = threading.Thread(target=doubled.prepare, args=(x,))
    preparing.start()
    assert begun.wait(60)
    results = []
    asking = threading.Thread(target=lambda: results.append(doubled(x).tolist()))
    asking.start()
    go_on.set()
    asking.join()
    preparing.join()
    assert results == [[2, 2, 2]]
    assert len(made) == 1


@pytest.mark.slow
def test_programs_that_call_lapack_run_one_at_a_time_and_are_waited_for(monkeypatch):
    @program()
    def factor(matrices):
        return jnp.linalg.cholesky(matrices)

    waited = []
    monkeypatch.setattr(runtime.jax, "block_until_ready", lambda made: waited.append(made) or made)
    matrices = np.stack([np.eye(3, dtype=np.float32) * size for size in (1, 4)])
    with runtime._one_at_a_time:
        other = threading.Thread(target=factor, args=(matrices,))
        other.start()
        other.join(1)
        assert other.is_alive()
    other.join()
    assert len(waited) == 1
    np.testing.assert_allclose(waited[0][1], 2 * np.eye(3), rtol=1e-6)
