"""From `import undertow` to the first result, in processes of their own: with nothing kept, and with programs kept.

The first process starts with an empty folder of compiled programs and fills it; those after it find them there. Wall
time is what a user waits; processor time of all threads together also means something on a machine with other work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

CHILD = """
import json, sys, time
begun = time.perf_counter()
from undertow.runs.default_model import default_model
model = default_model()
imported = time.perf_counter() - begun
import jax
import numpy as np
compiled = []
def note(event, seconds, **more):
    if event.endswith("backend_compile_duration"):
        compiled.append(seconds)
jax.monitoring.register_event_duration_secs_listener(note)
first, second = np.random.default_rng(0).normal(size=(2, *json.loads(sys.argv[1])))
given = time.perf_counter()
model.update(first).mean
answered = time.perf_counter()
processor = time.process_time()
model.update(second).mean
print(json.dumps({
    "imported": imported,
    "first": answered - given,
    "together": imported + answered - given,
    "processor": processor,
    "compiled": len(compiled),
    "second": time.perf_counter() - answered,
}))
"""
"""What each process runs."""


def start(
    shape: tuple[int, ...] = (40, 40), repeats: int = 3, say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Time processes from import to first result, and say what was found.

    Args:
        shape: Of a slice.
        repeats: Processes that find kept programs.
        say: Shows a line.

    Returns:
        For each process, first the one that kept nothing: seconds of the import (`imported`), of the first result
        (`first`), of both (`together`) and of the next result (`second`), processor seconds until the first
        (`processor`), and how many programs were compiled.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1 + repeats):
            found.append(_process(shape, os.path.join(folder, "programs")))
            name = f"kept, process {number}" if number else "nothing kept"
            say(
                "{name:<16} import {imported:.2f} s, first result {first:.2f} s, together {together:.2f} s "
                "(processor {processor:.2f} s); {compiled} programs compiled; second result {second:.3f} s".format(
                    name=name, **found[-1]
                )
            )
    return found


def _process(shape: tuple[int, ...], folder: str) -> dict[str, Any]:
    """One process; JAX's own cache would hide what compiling costs."""
    without = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(shape)],
        env={**without, "UNDERTOW_CACHE": folder},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result
