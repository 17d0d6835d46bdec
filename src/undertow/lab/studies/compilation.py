"""How large the compiled step is, and what it takes to make it: traced, lowered, compiled, for slices of some shapes.

Processor seconds of all threads together, which also mean something on a machine with other work; JAX's compilation
cache is off meanwhile. Memory is what the compiler plans, arguments and results included, over that of the window's
values and probabilities.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.config import make_config
from undertow.engine.state import precision
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.model.step import init_core, step
from undertow.programs import runtime

SHAPES = ((6, 5), (40, 40), (144, 176))


@dataclass(frozen=True)
class Making:
    """What one program took.

    Attributes:
        lines: of StableHLO.
        traced: processor seconds.
        lowered: likewise.
        compiled: likewise.
        kernels: fusions in what the compiler made of it.
        memory: bytes as the compiler plans them (arguments, results, temporary arrays), over those of values and
            probabilities of the window.
    """

    lines: int
    traced: float
    lowered: float
    compiled: float
    kernels: int
    memory: float


def make(shape: tuple[int, ...], level: bool = False) -> Making:
    """Trace, lower and compile the default step for slices of a shape."""
    config = make_config(level=level).sized(shape)
    settings = config.settings()
    with precision(config):
        core = jax.eval_shape(lambda: init_core(settings, shape))
        values, mask = jax.eval_shape(lambda: (jnp.zeros(shape, config.dtype), jnp.zeros(shape, bool)))
        fresh = jax.jit(lambda *arguments: step.__wrapped__(*arguments), donate_argnums=0, keep_unused=True)
        times = [time.process_time()]
        traced = fresh.trace(core, values, mask, settings)
        times.append(time.process_time())
        lowered = traced.lower()
        times.append(time.process_time())
        with uncached():
            compiled = runtime.compiled(lowered, jax.devices()[0])
        times.append(time.process_time())
    window = config.window * np.prod(shape) * 2 * np.dtype(config.dtype).itemsize
    memory: Any = compiled.memory_analysis()
    planned = memory.temp_size_in_bytes + memory.argument_size_in_bytes
    planned += memory.output_size_in_bytes - memory.alias_size_in_bytes
    return Making(
        lines=len(lowered.as_text().splitlines()),
        traced=times[1] - times[0],
        lowered=times[2] - times[1],
        compiled=times[3] - times[2],
        kernels=(compiled.as_text() or "").count(" fusion("),
        memory=planned / float(window),
    )


@contextmanager
def uncached() -> Iterator[None]:
    """While it lasts, JAX looks for nothing in its compilation cache."""
    config: Any = jax.config
    before = config.jax_enable_compilation_cache
    config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        config.update("jax_enable_compilation_cache", before)


def compilation(reporter: Reporter, shapes: Sequence[tuple[int, ...]] = SHAPES) -> StudyTable:
    """The step with and without a level, for every shape."""
    headings = ("slice", "level", "lines of StableHLO", "traced", "lowered", "compiled", "kernels", "memory")
    table = StudyTable("The default step: processor seconds; memory over values and probabilities", headings)
    reporter.begin(2 * len(shapes))
    for shape in shapes:
        for level in (False, True):
            made = make(shape, level)
            seconds = (f"{one:.2f}" for one in (made.traced, made.lowered, made.compiled))
            sizes = "×".join(map(str, shape))
            table.rows.append(
                (sizes, "yes" if level else "no", str(made.lines), *seconds, str(made.kernels), f"{made.memory:.1f}")
            )
            reporter.done()
    return table
