"""Digests of what is compiled: they change when the arithmetic does, and not when something is moved or renamed."""

import hashlib
import re

import jax
import numpy as np

from undertow.config import make_config
from undertow.engine import batching as batch
from undertow.engine import functional
from undertow.model.phases import infer as looks
from undertow.model.step import advance

SMALL = {"max_rank": 3, "window": 4}
CONFIGS = {
    "fixed": ("fixed", (6, 5), {}),
    "level": ("fixed", (6, 5), {"level": True}),
    "recursive": ("fast", (6, 5), {}),
    "paper": ("paper", (6, 5), {}),
    "paper_window": ("paper", (6, 5), {"tau": "window"}),
    "three_modes": ("fixed", (4, 3, 2), {}),
    "vector_double": ("fixed", (7,), {"level": True, "dtype": "float64"}),
    "nearly_full": ("fixed", (6, 5), {"robust": False, "noise": "shared"}),
    "sparse": ("fixed", (6, 5), {"noise": "shared"}),
}
ENTRIES = 8


def digest(function, *arguments, **fixed):
    """Of the jaxpr, without the names of functions and the addresses of objects."""
    text = str(jax.make_jaxpr(lambda *traced: function(*traced, **fixed))(*arguments))
    text = re.sub(r"\bname=\S+", "name=_", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def slice_of(state):
    """Values, mask and, for a sparse state, where they lie."""
    size = state.shape if state.entries is None else (state.entries,)
    values, mask = np.zeros(size, state.config.dtype), np.ones(size, bool)
    places = jax.tree.map(lambda ring: ring[0], state.core.window.places)
    return values, mask, places


def digests():
    """All of them, by name."""
    found = {}
    for name, (preset, shape, settings) in CONFIGS.items():
        state = functional.init(
            make_config(preset, **SMALL, **settings), shape, entries=ENTRIES if name == "sparse" else None
        )
        with functional.scope(state.config):
            values, mask, places = slice_of(state)
            config = functional.working(state)
            holes = {"holes": 3} if name == "nearly_full" else {}
            found[name] = digest(
                lambda core, values, mask, config, places, **holes: advance(
                    core, values, mask, config, places=places, **holes
                ),
                *(state.core, values, mask, config, places),
                **holes,
            )
            if name in ("fixed", "level", "sparse"):
                half = mask.copy()
                found[f"{name}_predict"] = digest(looks.foretell, state.core, values, mask, half, config, places)
                found[f"{name}_smooth"] = digest(looks.smooth, state.core, np.int32(0), config)
            if name == "level":
                core, values, mask = jax.tree.map(lambda leaf: np.stack([leaf] * 2), (state.core, values, mask))
                found["batch_begin"] = digest(batch.open_all, core, values, mask, config)
    return found
