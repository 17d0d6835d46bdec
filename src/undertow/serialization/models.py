"""A model on disk as a checkpoint file: which arrays, under which names, and whether they fit this version."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.functional import State, scope
from undertow.engine.selection import Member, Panel
from undertow.model.step import init_core
from undertow.model.types import Core
from undertow.serialization.container import CheckpointError, read, write

STATE_VERSION = 3
"""Raise it whenever the meaning or the names of the arrays change, and say in `load` how to read older ones."""


def save(path: str | os.PathLike[str], params: dict[str, Any], panel: Panel) -> None:
    """Write the settings as the user gave them, and all models of the panel."""
    header = {
        "kind": "RobustCP",
        "state_version": STATE_VERSION,
        "params": params,
        "shape": list(panel.shape),
        "entries": panel.members[0].state.entries,
        "steps": panel.steps,
        "changed": panel.changed,
        "next_trial": panel.next_trial,
        "configs": [asdict(config) for config in panel.configs],
        "members": [
            {
                "config": panel.configs.index(member.state.config),
                "places": member.state.core.factors.active.shape[0],
                "missing": list(member.state.missing),
                "unit": member.state.unit,
                "steps": member.state.steps,
                "score": member.score,
                "judged": member.judged,
            }
            for member in panel.members
        ],
    }
    arrays = {"typical": panel.typical}
    for place, member in enumerate(panel.members):
        leaves, _ = jax.tree_util.tree_flatten_with_path(member.state.core)
        arrays |= {f"{place}.{name_of(path)}": np.asarray(leaf) for path, leaf in leaves}
    write(path, header, arrays)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Panel]:
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
        panel = _restored(header, arrays)
        params = dict(header["params"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} does not fit this Undertow ({error}): "
            "use the version of undertow that wrote it, or start a new model."
        ) from error
    return params, panel


def save_fleet(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a fleet: its settings, and every array with members as the first axis."""
    write(path, {"kind": "Fleet", "state_version": STATE_VERSION, **header}, arrays)


def load_fleet(
    path: str | os.PathLike[str], config_of: Callable[[dict[str, Any]], Config]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save_fleet` wrote, or say why not; `config_of` turns settings into a configuration."""
    header, arrays = read(path)
    if header.get("kind") != "Fleet":
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} holds {header.get('kind')!r}, not a fleet: name another file."
        )
    try:
        if header["state_version"] != STATE_VERSION:
            raise ValueError(f"state version {header['state_version']!r}, not {STATE_VERSION}")
        shape, config = tuple(int(size) for size in header["shape"]), config_of(dict(header["params"]))
        with scope(config):
            wanted = jax.tree_util.tree_flatten_with_path(jax.eval_shape(lambda: init_core(config.settings(), shape)))[
                0
            ]
        expected = {name_of(place): (leaf.shape, leaf.dtype) for place, leaf in wanted}
        expected |= {"ids": ((), np.int64), "units": ((), np.float64), "steps": ((), np.int64)}
        for name, (inner, dtype) in expected.items():
            array = arrays[name]
            if array.shape != (len(arrays["ids"]), *inner) or array.dtype != dtype:
                raise ValueError(f"{name} is {array.dtype}{array.shape}")
        int(header["next"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} does not fit this Undertow ({error}): "
            "use the version of undertow that wrote it, or start a new fleet."
        ) from error
    return header, arrays


def _restored(header: dict[str, Any], arrays: dict[str, Any]) -> Panel:
    shape = tuple(int(size) for size in header["shape"])
    entries = None if header.get("entries") is None else int(header["entries"])
    configs = tuple(Config(**settings) for settings in header["configs"])
    members = []
    for place, held in enumerate(header["members"]):
        config = configs[held["config"]]
        core = _restored_core(replace(config, max_rank=int(held["places"])), shape, entries, arrays, f"{place}.")
        missing = tuple(int(count) for count in held["missing"])
        state = State(config, shape, float(held["unit"]), int(held["steps"]), core, missing)
        members.append(Member(state, float(held["score"]), int(held["judged"])))
    if not members:
        raise ValueError("no model inside")
    typical = arrays["typical"]
    expected = shape if entries is None else (0,)
    if typical.shape != expected or typical.dtype != np.float64:
        raise ValueError(f"typical is {typical.dtype}{typical.shape}, not float64{expected}")
    numbers = (int(header[name]) for name in ("steps", "changed", "next_trial"))
    steps, changed, next_trial = numbers
    return Panel(configs, tuple(members), steps, typical, changed, next_trial)


def _restored_core(
    config: Config, shape: tuple[int, ...], entries: int | None, arrays: dict[str, Any], prefix: str
) -> Core:
    with scope(config):
        wanted = jax.eval_shape(lambda: init_core(config.settings(), shape, entries))
        leaves, tree = jax.tree_util.tree_flatten_with_path(wanted)
        restored = []
        for place, leaf in leaves:
            array = arrays[prefix + name_of(place)]
            if array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise ValueError(f"{name_of(place)} is {array.dtype}{array.shape}, not {leaf.dtype}{leaf.shape}")
            restored.append(jax.numpy.asarray(array))
        core: Core = jax.tree_util.tree_unflatten(tree, restored)
    return core


NAMES_IN_FILES = {
    "active": "alive",
    "entry_index": "places",
    "discounted": "past",
    "retention": "trust",
    "initial_variance": "spread",
    "walk_variance": "walk",
}
"""Fields that have another name in files. A field that is renamed in the code gets a line here: files stay readable."""


def name_of(place: Any) -> str:
    """window.values, factors.means.0, …: what an array of the state is called in files."""
    fields = (str(getattr(key, "name", getattr(key, "idx", key))) for key in place)
    return ".".join(NAMES_IN_FILES.get(field, field) for field in fields)
