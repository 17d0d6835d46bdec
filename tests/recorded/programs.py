"""Digests of what is compiled: they change when the arithmetic does, and not when something is moved or
renamed."""

import hashlib
import re

import jax
import numpy as np

from undertow.config import make_config
from undertow.engine import batching
from undertow.engine.state import init, precision
from undertow.model.phases import infer
from undertow.model.step import step as model_step

SMALL = {"max_rank": 3, "window": 4}
CONFIGS = {
    "default": ("default", (6, 5), {}),
    "level": ("default", (6, 5), {"level": True}),
    "recursive": ("fast", (6, 5), {}),
    "paper": ("paper", (6, 5), {}),
    "paper_window": ("paper", (6, 5), {"tau": "window"}),
    "three_modes": ("default", (4, 3, 2), {}),
    "vector_double": ("default", (7,), {"level": True, "dtype": "float64"}),
    "nearly_full": ("default", (6, 5), {"robust": False, "noise": "shared"}),
    "sparse": ("default", (6, 5), {"noise": "shared"}),
}
ENTRIES = 8


def digest(function, *arguments, **fixed):
    """Of the traced program: every operation with its parameters, shapes and operands, no name of a function."""
    found = hashlib.sha256()
    closed = jax.make_jaxpr(lambda *traced: function(*traced, **fixed))(*arguments)
    _add(found, closed.jaxpr, closed.consts)
    return found.hexdigest()[:16]


def _add(found, jaxpr, consts=()):
    """Add a program to a digest; variables count by the order of their appearance."""
    numbers = {}

    def operand(variable):
        if hasattr(variable, "val"):
            return f"{variable.aval.str_short()}={variable.val}"
        return f"{variable.aval.str_short()}:{numbers.setdefault(variable, len(numbers))}"

    found.update(repr([operand(one) for one in (*jaxpr.constvars, *jaxpr.invars)]).encode())
    found.update(b"".join(np.asarray(const).tobytes() for const in consts))
    for equation in jaxpr.eqns:
        found.update(equation.primitive.name.encode())
        found.update(repr([operand(one) for one in (*equation.invars, *equation.outvars)]).encode())
        for key, value in sorted(equation.params.items()):
            parts = value if isinstance(value, (tuple, list)) else [value]
            for part in parts:
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    _add(found, inner, getattr(part, "consts", ()))
                elif key != "name":
                    found.update(re.sub("0x[0-9a-f]+|<function.*", "", f"{key}={part}").encode())
    found.update(repr([operand(one) for one in jaxpr.outvars]).encode())


def slice_of(state):
    """Values, mask and, for a sparse state, where they lie."""
    size = state.shape if state.entry_capacity is None else (state.entry_capacity,)
    values, mask = np.zeros(size, state.config.dtype), np.ones(size, bool)
    entry_index = jax.tree.map(lambda ring: ring[0], state.core.window.entry_index)
    return values, mask, entry_index


def digests():
    """All of them, by name."""
    found = {}
    for name, (preset, shape, settings) in CONFIGS.items():
        state = init(make_config(preset, **SMALL, **settings), shape, entries=ENTRIES if name == "sparse" else None)
        with precision(state.config):
            values, mask, entry_index = slice_of(state)
            config = state.settings
            holes = {"holes": 3} if name == "nearly_full" else {}
            found[name] = digest(
                lambda core, values, mask, config, entry_index, **holes: model_step(
                    core, values, mask, config, entry_index=entry_index, **holes
                ),
                *(state.core, values, mask, config, entry_index),
                **holes,
            )
            if name in ("default", "level", "sparse"):
                half = mask.copy()
                found[f"{name}_predict"] = digest(
                    infer.cross_predict, state.core, values, mask, half, config, entry_index
                )
                found[f"{name}_smooth"] = digest(infer.smooth, state.core, np.int32(0), config)
            if name == "level":
                core, values, mask = jax.tree.map(lambda leaf: np.stack([leaf] * 2), (state.core, values, mask))
                found["batch_begin"] = digest(batching.open_all, core, values, mask, config)
    return found
