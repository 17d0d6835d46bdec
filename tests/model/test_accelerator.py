"""Programs as they are traced for a GPU, on a CPU: other loops, and to rounding the same results."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.model import platform
from undertow.model.flow import either, only_if, times, while_due
from undertow.model.step import step
from undertow.programs.program import forget_all


@pytest.fixture
def traced_for(monkeypatch):
    """Traces for a GPU or a CPU from now on; nothing is kept of what was traced before, or later of this."""
    own = platform.on_cpu
    holders = [
        module for name, module in sys.modules.items() if name.startswith("undertow") and "on_cpu" in vars(module)
    ]

    def trace_for(gpu):
        jax.clear_caches()
        forget_all()
        for module in holders:
            monkeypatch.setattr(module, "on_cpu", (lambda: False) if gpu else own)

    monkeypatch.setenv("UNDERTOW_CACHE", "off")
    yield trace_for
    monkeypatch.undo()
    jax.clear_caches()
    forget_all()


def counted(program, *arguments):
    return jax.jit(program).lower(*arguments).as_text().count("stablehlo.while")


def test_a_gpu_asks_only_after_the_likely_turns(traced_for):
    def smaller(x):
        return while_due(lambda now: now > 10, lambda now: now / 2, x, likely=3)

    def at_most_three(x):
        return while_due(lambda now: now > 10, lambda now: now / 2, x, likely=3, most=3)

    def doubled(x):
        return times(4, lambda now: 2 * now, x)

    starts, found = (20.0, 70.0, 1000.0), {}
    for gpu in (False, True):
        traced_for(gpu)
        assert [counted(one, jnp.float32(1)) for one in (smaller, at_most_three, doubled)] == (
            [1, 0, 0] if gpu else [1] * 3
        )
        found[gpu] = [[float(jax.jit(one)(jnp.float32(x))) for x in starts] for one in (smaller, doubled)]
    assert found[True] == found[False] == [[10.0, 8.75, 7.8125], [320.0, 1120.0, 16000.0]]
    assert float(at_most_three(jnp.float32(70))) == 8.75


def test_what_is_known_while_tracing_is_no_branch():
    def program(x):
        return either(True, lambda: only_if(False, jnp.sin, x), lambda: only_if(True, jnp.sin, x))

    assert counted(program, jnp.float32(1)) == 0
    assert float(program(jnp.float32(2))) == 2


@pytest.mark.slow
def test_a_gpu_s_step_gives_what_a_cpu_s_does(traced_for):
    """With a scene that changes, a slice off and a slice of nothing: beyond the likely sweeps, too."""
    draw = np.random.default_rng(5)
    left, right, other = draw.normal(size=(6, 2)), draw.normal(size=(5, 2)), draw.normal(size=(6, 2))
    slices = [((left if t < 9 else other) * draw.normal(size=2)) @ right.T for t in range(14)]
    slices = [np.where(draw.random((6, 5)) < 0.8, x + 0.05 * draw.normal(size=(6, 5)), np.nan) for x in slices]
    slices[6], slices[7] = np.full((6, 5), np.nan), slices[7] + 40
    found, asked = [], []
    for gpu in (False, True):
        traced_for(gpu)
        model = ut.RobustCP(max_rank=3, window=4, level=True)
        results = [model.update(x) for x in slices]
        found.append([(one.mean, one.std, one.rank, one.iterations) for one in results])
        state = model.state
        lowered = step.lower(state.core, slices[0].astype("f"), slices[0] > 0, state.settings)
        asked.append(lowered.as_text().count("stablehlo.while"))
    for number, (one, another) in enumerate(zip(*found, strict=True)):
        for part, like in zip(one, another, strict=True):
            np.testing.assert_allclose(part, like, rtol=2e-3, atol=2e-3, err_msg=f"slice {number}")
    assert max(iterations for *_, iterations in found[0]) > 2
    assert asked[1] < asked[0]
