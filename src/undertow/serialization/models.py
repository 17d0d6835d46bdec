"""A model or a fleet in a checkpoint file: which arrays, under which names, and whether they fit this version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.history import COUNTS, History
from undertow.engine.selection import Candidate, Selection
from undertow.engine.state import State, precision
from undertow.model.step import init_core
from undertow.model.types import Core
from undertow.serialization.container import CheckpointError, read, write

STATE_VERSION = 3
"""Raise it whenever the meaning or the names of the arrays change, and say in `_opened` how to read older ones."""
NAMES_IN_FILES = {
    "active": "alive",
    "entry_index": "places",
    "discounted": "past",
    "retention": "trust",
    "initial_variance": "spread",
    "walk_variance": "walk",
}
"""Fields that have another name in files. A field that is renamed in the code gets a line here: files stay readable."""


def save(path: str | os.PathLike[str], params: dict[str, Any], selection: Selection) -> None:
    """Write the settings as the user gave them, and all candidates of the selection."""
    states = [candidate.state for candidate in selection.candidates]
    header = {
        "kind": "RobustCP",
        "state_version": STATE_VERSION,
        "params": params,
        "shape": list(selection.shape),
        "entries": states[0].entry_capacity,
        "steps": selection.steps,
        "changed": selection.changed,
        "next_trial": selection.next_trial,
        "history": selection.history.to_header(),
        "configs": [asdict(config) for config in selection.configs],
        "members": [
            {
                "config": selection.configs.index(candidate.state.config),
                "places": candidate.state.capacity,
                "missing": list(candidate.state.missing),
                "unit": candidate.state.unit,
                "steps": candidate.state.steps,
                "score": candidate.score,
                "judged": candidate.scored,
            }
            for candidate in selection.candidates
        ],
    }
    arrays = {"typical": selection.typical}
    for position, state in enumerate(states):
        leaves, _ = jax.tree_util.tree_flatten_with_path(state.core)
        arrays |= {f"{position}.{name_of(keys)}": np.asarray(leaf) for keys, leaf in leaves}
    write(path, header, arrays)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Selection]:
    """Read what `save` wrote: the settings as the user gave them, and the selection.

    Raises:
        CheckpointError: The file holds something else, is damaged, or does not fit this version.
    """
    header, arrays = _opened(path, "RobustCP", "model")
    with _refused(path, "model"):
        return dict(header["params"]), _selection(header, arrays)


def save_fleet(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a fleet: its settings, and every array with members as the first axis."""
    write(path, {"kind": "Fleet", "state_version": STATE_VERSION, **header}, arrays)


def load_fleet(
    path: str | os.PathLike[str], config_of: Callable[[dict[str, Any]], Config]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save_fleet` wrote; `config_of` turns settings into a configuration.

    Raises:
        CheckpointError: The file holds something else, is damaged, or does not fit this version.
    """
    header, arrays = _opened(path, "Fleet", "fleet")
    with _refused(path, "fleet"):
        shape, config = tuple(int(size) for size in header["shape"]), config_of(dict(header["params"]))
        members = len(arrays["ids"])
        for keys, leaf in jax.tree_util.tree_flatten_with_path(_expected(config, shape))[0]:
            _fitting(arrays, name_of(keys), (members, *leaf.shape), leaf.dtype)
        for name, dtype in (("ids", np.int64), ("units", np.float64), ("steps", np.int64)):
            _fitting(arrays, name, (members,), dtype)
        if "history.seen" in arrays:
            for name, kind in COUNTS.items():
                _fitting(arrays, f"history.{name}", (members,), np.dtype(kind))
            _fitting(arrays, "history.values", (members, *shape), np.float64)
            _fitting(arrays, "history.mask", (members, *shape), np.bool_)
        int(header["next"])
    return header, arrays


def name_of(keys: Any) -> str:
    """window.values, factors.means.0, …: what an array of the state is called in files."""
    fields = (str(getattr(key, "name", getattr(key, "idx", key))) for key in keys)
    return ".".join(NAMES_IN_FILES.get(field, field) for field in fields)


def _opened(path: str | os.PathLike[str], kind: str, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, arrays = read(path)
    if header.get("kind") != kind:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} holds {header.get('kind')!r}, not a {what}: name another file."
        )
    if header.get("state_version") != STATE_VERSION:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} has state version {header.get('state_version')!r}, this Undertow reads "
            f"{STATE_VERSION}: use the version of undertow that wrote it, or start a new {what}."
        )
    return header, arrays


@contextmanager
def _refused(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """What does not fit is a `CheckpointError` that says so."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} does not fit this Undertow ({error}): "
            f"use the version of undertow that wrote it, or start a new {what}."
        ) from error


def _selection(header: dict[str, Any], arrays: dict[str, Any]) -> Selection:
    shape = tuple(int(size) for size in header["shape"])
    entries = None if header.get("entries") is None else int(header["entries"])
    configs = tuple(Config(**settings) for settings in header["configs"])
    candidates = []
    for position, held in enumerate(header["members"]):
        config = configs[held["config"]]
        core = _core(_expected(config, shape, entries, int(held["places"])), arrays, f"{position}.", config)
        missing = tuple(int(count) for count in held["missing"])
        state = State(config, shape, float(held["unit"]), int(held["steps"]), core, missing)
        candidates.append(Candidate(state, float(held["score"]), int(held["judged"])))
    if not candidates:
        raise ValueError("no model inside")
    typical = _fitting(arrays, "typical", shape if entries is None else (0,), np.float64)
    steps, changed, next_trial = (int(header[name]) for name in ("steps", "changed", "next_trial"))
    history = History.from_header(header.get("history"), steps)
    return Selection(configs, tuple(candidates), steps, typical, changed, next_trial, history)


def _expected(config: Config, shape: tuple[int, ...], entries: int | None = None, capacity: int | None = None) -> Core:
    """Shapes and types of the arrays of a state."""
    with precision(config):
        core: Core = jax.eval_shape(lambda: init_core(config.settings(capacity), shape, entries))
    return core


def _core(expected: Core, arrays: dict[str, Any], prefix: str, config: Config) -> Core:
    leaves, tree = jax.tree_util.tree_flatten_with_path(expected)
    with precision(config):
        found = [
            jax.numpy.asarray(_fitting(arrays, prefix + name_of(keys), leaf.shape, leaf.dtype)) for keys, leaf in leaves
        ]
    core: Core = jax.tree_util.tree_unflatten(tree, found)
    return core


def _fitting(arrays: dict[str, Any], name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    array = arrays[name]
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} is {array.dtype}{array.shape}, not {np.dtype(dtype)}{shape}")
    return array
