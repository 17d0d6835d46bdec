"""A model's state as a checkpoint file: which arrays, under which names, and whether they fit this version."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

from undertow.checkpoint import CheckpointError, read, write
from undertow.functional import State, scope
from undertow.model.config import Config
from undertow.model.state import Core
from undertow.model.step import init_core

STATE_VERSION = 1
"""Raise it whenever the meaning or the names of the arrays change, and say in `load` how to read older ones."""


def save(path: str | os.PathLike[str], params: dict[str, Any], state: State) -> None:
    """Write the settings as the user gave them, and the state."""
    header = {
        "kind": "RobustCP",
        "state_version": STATE_VERSION,
        "params": params,
        "config": asdict(state.config),
        "shape": list(state.shape),
        "unit": state.unit,
        "steps": state.steps,
    }
    leaves, _ = jax.tree_util.tree_flatten_with_path(state.core)
    write(path, header, {_name(place): np.asarray(leaf) for place, leaf in leaves})


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], State]:
    """Read what `save` wrote, or say why not."""
    header, arrays = read(path)
    if header.get("kind") != "RobustCP":
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} holds {header.get('kind')!r}, not a model: name another file."
        )
    if header.get("state_version") != STATE_VERSION:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} has state version {header.get('state_version')!r}, this Undertow reads "
            f"{STATE_VERSION}: use the version of undertow that wrote it, or start a new model."
        )
    try:
        config = Config(**header["config"])
        shape = tuple(int(size) for size in header["shape"])
        unit, steps = float(header["unit"]), int(header["steps"])
        params = dict(header["params"])
        core = _restore(config, shape, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} does not fit this Undertow ({error}): "
            "use the version of undertow that wrote it, or start a new model."
        ) from error
    return params, State(config, shape, unit, steps, core)


def _restore(config: Config, shape: tuple[int, ...], arrays: dict[str, Any]) -> Core:
    with scope(config):
        wanted = jax.eval_shape(lambda: init_core(config, shape))
        leaves, tree = jax.tree_util.tree_flatten_with_path(wanted)
        restored = []
        for place, leaf in leaves:
            array = arrays[_name(place)]
            if array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise ValueError(f"{_name(place)} is {array.dtype}{array.shape}, not {leaf.dtype}{leaf.shape}")
            restored.append(jax.numpy.asarray(array))
        core: Core = jax.tree_util.tree_unflatten(tree, restored)
    return core


def _name(place: Any) -> str:
    """window.values, factors.means.0, …"""
    return ".".join(str(getattr(key, "name", getattr(key, "idx", key))) for key in place)
