"""What is used of JAX beyond its documented interface."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.programs import runtime
from undertow.programs.structure import Outline, packed

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from undertow.programs.program import program

zero, one = jax.devices()
both = jax.sharding.NamedSharding(jax.make_mesh((2,), ("a",)), jax.sharding.PartitionSpec("a"))
x = np.ones(4, np.float32)
kept, plain = (wrap(lambda x, y: x + y) for wrap in (program(), jax.jit))

def answer(function, arguments):
    try:
        found = function(*arguments)
    except ValueError:
        return "refused"
    return found.devices(), found.committed, np.asarray(found).tolist()

def compare(*arguments):
    assert answer(kept, arguments) == answer(plain, arguments), arguments

for _ in ("compiled", "loaded"):
    compare(x, x)
    compare(jax.device_put(x, one), x)
    compare(jax.device_put(x, one), jnp.ones(4))
    compare(jax.device_put(x, one), jax.device_put(x, one))
    compare(jax.device_put(x, zero), jax.device_put(x, one))
    compare(jax.device_put(x, both), x)
    before = jnp.ones(4)
    with jax.default_device(one):
        compare(x, x)
        compare(before, before)
        compare(jnp.ones(4), x)
    assert kept.count() > 0
    kept.forget()
"""


@pytest.mark.slow
def test_programs_run_on_the_device_on_which_jit_would_run_them(tmp_path):
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "UNDERTOW_CACHE": str(tmp_path / "programs")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
    assert len(list((tmp_path / "programs").iterdir())) == 2  # one for each device


LAPACK = """
import json
from concurrent.futures import ThreadPoolExecutor
import jax, jax.numpy as jnp, numpy as np
from undertow.programs.program import program

@program(donate=["x"])
def solved(x):
    linalg = jnp.linalg
    return jax.tree.leaves([f(x) for f in (linalg.cholesky, linalg.eigh, linalg.slogdet, linalg.svd, linalg.qr)])

x = np.diag(np.arange(1, 5, dtype=np.float32)) + 0.5

def answer(device):
    results = [solved(jax.device_put(x, device)) for _ in range(20)]
    return [np.asarray(leaf).tobytes().hex() for leaf in jax.tree.leaves(results)]

with ThreadPoolExecutor() as threads:
    answers = list(threads.map(answer, [*jax.devices()] * 4))
assert all(one == answers[0] for one in answers)
print(json.dumps(answers[0]))
"""


@pytest.mark.slow
def test_routines_of_lapack_are_there_for_a_program_that_was_never_lowered(tmp_path):
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "UNDERTOW_CACHE": str(tmp_path / "programs")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", LAPACK]
    first, second = (
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True) for _ in ("new", "loaded")
    )
    assert first.stdout == second.stdout
    assert len(list((tmp_path / "programs").iterdir())) == 2  # one for each device


def test_what_a_program_calls_is_found():
    def lowered(function):
        return jax.jit(function).trace(jnp.eye(3)).lower(lowering_platforms=("cpu",))

    assert runtime.calls(lowered(jnp.sin)) == ()
    factor = runtime.calls(lowered(jnp.linalg.cholesky))
    assert factor == ("lapack_spotrf_ffi",)
    assert runtime.callable_later(())
    assert runtime.callable_later(factor)
    host = runtime.calls(lowered(lambda x: jax.pure_callback(np.sin, x, x)))
    assert len(host) == 1
    assert not runtime.callable_later(host)
    assert not runtime.callable_later((*factor, "cuhybrid_eig_real"))
    assert runtime.callable_later(("__gpu$xla.gpu.triton", "cu_threefry2x32_ffi", "cusolver_potrf_ffi"))


def test_a_program_whose_routines_cannot_be_made_ready_is_not_loaded():
    stored = packed(Outline(jax.tree.structure(1), (((), "float32", False),), ("unheard_of",)), b"program")
    with pytest.raises(ValueError, match="it calls unheard_of"):
        runtime.loaded(stored, runtime.place([]))


def test_numbers_are_sent_as_jit_would_see_them():
    for leaf in (1, 2.5, True, np.float64(2), np.int64(3), np.ones(2, np.float32)):
        (expected,) = jax.jit(lambda x: x).trace(leaf).jaxpr.in_avals
        assert runtime.sent(leaf).aval == expected


def test_what_is_sent_is_what_jax_would_send(monkeypatch):
    """Also where the function is missing that does it quickly."""
    for leaf in (np.float32(2), np.ones((2, 3), np.float32), np.ones(2), np.array(True)):
        quick, there = runtime.sent(leaf), jax.device_put(leaf)
        with monkeypatch.context() as patched:
            patched.setattr(runtime, "_quick_put", lambda: None)
            slow = runtime.sent(leaf)
        for one in (quick, slow):
            assert (one.aval, one.sharding, one._committed) == (there.aval, there.sharding, there._committed)
            np.testing.assert_array_equal(one, there)


def test_what_is_sent_is_a_copy():
    given = np.ones(1000, np.float32)
    there = runtime.sent(given)
    given[:] = 0
    np.testing.assert_array_equal(there, np.ones(1000))


def test_the_place_of_nothing_is_the_default_device():
    assert runtime.place([]) == runtime.place([jnp.ones(2)]) == runtime.Place(jax.devices()[0], committed=False)
    assert runtime.place([jax.device_put(1.0, jax.devices()[0])]).committed


class Lowered:
    """Notes how it is compiled."""

    def __init__(self, size: int) -> None:
        self.in_avals = (jax.ShapeDtypeStruct((size,), jnp.float32),)

    def compile(self, compiler_options=None):
        return compiler_options


@pytest.mark.parametrize(
    ("platform", "size", "options"),
    [
        ("cpu", runtime.SMALL, runtime.QUICKLY["cpu"]),
        ("cpu", runtime.SMALL + 1, None),
        ("gpu", runtime.MIDDLING, runtime.QUICKLY["gpu"]),
        ("gpu", runtime.MIDDLING + 1, None),
        ("tpu", 1, None),
    ],
)
def test_only_small_programs_are_compiled_quickly(platform, size, options):
    device = type("Device", (), {"platform": platform})
    assert runtime.compiled(Lowered(size), device) == options
    if platform == "cpu":
        larger = (runtime.MIDDLING - runtime.SMALL) + size  # of one that loses little
        assert runtime.compiled(Lowered(larger), device, runtime.MIDDLING) == options


def test_a_compiler_that_does_not_know_the_options_compiles_without(monkeypatch):
    lowered = jax.jit(lambda x: x + 1).lower(np.float32(1))
    monkeypatch.setattr(runtime, "QUICKLY", {"cpu": {"xla_no_such_option": True}})
    assert runtime.compiled(lowered, jax.devices()[0])(np.float32(1)) == 2


def test_the_options_are_known_to_this_compiler():
    jax.jit(lambda x: x + 1).lower(np.float32(1)).compile(compiler_options=runtime.QUICKLY["cpu"])
