"""A model or a fleet in a checkpoint: which arrays, under which names, and whether they fit this version.

Checkpoints of state version 3 could hold several models of one stream, run side by side. Of such a one the model that
predicted best is read, and goes on alone; its settings are then those of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.history import COUNTS, History
from undertow.engine.learner import Learner
from undertow.engine.output import CrossPrediction
from undertow.engine.state import State, precision
from undertow.model.settings import Slots
from undertow.model.step import init_core
from undertow.model.types import Core
from undertow.serialization.container import CheckpointError
from undertow.serialization.former import current_params

STATE_VERSION = 4
"""Raise it whenever the meaning or the names of the arrays change, and say here how to read older ones."""
READABLE = (3, 4)
NAMES_IN_FILES = {
    "active": "alive",
    "entry_index": "places",
    "discounted": "past",
    "retention": "trust",
    "initial_variance": "spread",
    "walk_variance": "walk",
}
"""Fields that have another name in files. A field that is renamed in the code gets a line here: files stay readable."""

CROSS_PREDICTED = ("cross_predicted.mean", "cross_predicted.variance")
"""Of the newest slice of a model that is not robust; files of earlier versions do not have them."""

Checkpoint = tuple[dict[str, Any], dict[str, Any]]
"""Header and arrays, as `container.write` and `container.to_bytes` take them."""


def packed(params: dict[str, Any], learner: Learner) -> Checkpoint:
    """The settings as the user gave them, and the model."""
    state = learner.state
    header = {
        "kind": "RobustCP",
        "state_version": STATE_VERSION,
        "params": params,
        "shape": list(state.shape),
        "entries": state.entry_capacity,
        "history": learner.history.to_header(),
        "config": asdict(state.config),
        "places": state.capacity,
        "missing": list(state.missing),
        "unit": state.unit,
        "steps": state.steps,
    }
    leaves, _ = jax.tree_util.tree_flatten_with_path(state.core)
    arrays = {name_of(keys): np.asarray(leaf) for keys, leaf in leaves}
    if state.cross_predicted is not None:
        found = state.cross_predicted.mean, state.cross_predicted.variance
        arrays |= {name: np.asarray(array) for name, array in zip(CROSS_PREDICTED, found, strict=True)}
    return header, arrays


def unpacked(checkpoint: Checkpoint, name: str) -> tuple[dict[str, Any], Learner]:
    """What `packed` was given; `name` is what messages call the checkpoint.

    Raises:
        CheckpointError: It holds something else, or does not fit this version.
    """
    header, arrays = _validated(checkpoint, "RobustCP", "model", name)
    with _refused(name, "model"):
        params = dict(header["params"])
        if header["state_version"] < STATE_VERSION:
            header, prefix = _selected(header)
            arrays = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            params = current_params(params, Config(**header["config"]))
        return params, _learner(header, arrays)


def packed_fleet(header: dict[str, Any], arrays: dict[str, Any], core: Core | None = None) -> Checkpoint:
    """A fleet: its settings, and every array with members as the first axis; of CP models their `core` too."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(core)
    named = {name_of(keys): leaf for keys, leaf in leaves}
    return {"kind": "Fleet", "state_version": STATE_VERSION, **header}, {**named, **arrays}


def unpacked_fleet(
    checkpoint: Checkpoint, name: str, config_of: Callable[[dict[str, Any]], Config]
) -> tuple[dict[str, Any], dict[str, Any], Core]:
    """What `packed_fleet` was given, of CP models; `config_of` turns settings into a configuration.

    Raises:
        CheckpointError: It holds something else, or does not fit this version.
    """
    header, arrays = _validated(checkpoint, "Fleet", "fleet", name)
    with _refused(name, "fleet"):
        if header["state_version"] < STATE_VERSION:
            header = {**header, "params": current_params(header["params"])}
        shape, config = tuple(int(size) for size in header["shape"]), config_of(dict(header["params"]))
        members = len(arrays["ids"])
        expected = _expected(config.sized(shape), shape, slots=stored_slots(arrays, members=1))
        leaves, tree = jax.tree_util.tree_flatten_with_path(expected)
        found = [_fitting(arrays, name_of(keys), (members, *leaf.shape), leaf.dtype) for keys, leaf in leaves]
        for key, dtype in (("ids", np.int64), ("units", np.float64), ("steps", np.int64)):
            _fitting(arrays, key, (members,), dtype)
        if "history.seen" in arrays:
            for key, kind in COUNTS.items():
                _fitting(arrays, f"history.{key}", (members,), np.dtype(kind))
            _fitting(arrays, "history.values", (members, *shape), np.float64)
            _fitting(arrays, "history.mask", (members, *shape), np.bool_)
        int(header["next"])
    return header, arrays, jax.tree_util.tree_unflatten(tree, found)


def name_of(keys: Any) -> str:
    """window.values, factors.means.0, …: what an array of the state is called in files."""
    fields = (str(getattr(key, "name", getattr(key, "idx", key))) for key in keys)
    return ".".join(NAMES_IN_FILES.get(field, field) for field in fields)


def _validated(checkpoint: Checkpoint, kind: str, what: str, name: str) -> Checkpoint:
    header, _ = checkpoint
    if header.get("kind") != kind:
        raise CheckpointError(f"checkpoint {name} holds {header.get('kind')!r}, not a {what}: name another one.")
    if header.get("state_version") not in READABLE:
        raise CheckpointError(
            f"checkpoint {name} has state version {header.get('state_version')!r}, this Undertow reads "
            f"{' and '.join(map(str, READABLE))}: use the version of undertow that wrote it, or start a new {what}."
        )
    return checkpoint


@contextmanager
def _refused(name: str, what: str) -> Iterator[None]:
    """What does not fit is a `CheckpointError` that says so."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {name} does not fit this Undertow ({error}): "
            f"use the version of undertow that wrote it, or start a new {what}."
        ) from error


def _selected(header: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Of state version 3, which could hold several models of one stream: the header of the one that predicted best,
    and what the names of its arrays begin with."""
    position, best = min(enumerate(header["members"]), key=lambda held: (held[1]["judged"] == 0, held[1]["score"]))
    return {**header, **best, "config": header["configs"][best["config"]]}, f"{position}."


def _learner(header: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    shape = tuple(int(size) for size in header["shape"])
    entries = None if header.get("entries") is None else int(header["entries"])
    config, steps = Config(**header["config"]), int(header["steps"])
    expected = _expected(config, shape, entries, int(header["places"]), stored_slots(arrays))
    core = _core(expected, arrays, config)
    missing = tuple(int(count) for count in header["missing"])
    cross_predicted = _cross_predicted(expected, arrays, config) if CROSS_PREDICTED[0] in arrays else None
    state = State(config, shape, float(header["unit"]), steps, core, missing, cross_predicted)
    return Learner(state, History.from_header(header.get("history"), steps))


def stored_slots(arrays: dict[str, Any], prefix: str = "", active: str = "alive", members: int = 0) -> Slots:
    """For how many slices and components there is room in the arrays of a file; `members` is the number of their axes
    that come first."""
    names = f"{prefix}window.values", f"{prefix}factors.{active}"
    return Slots(*(arrays[name].shape[members] for name in names))


def _expected(
    config: Config,
    shape: tuple[int, ...],
    entries: int | None = None,
    capacity: int | None = None,
    slots: Slots | None = None,
) -> Core:
    """Shapes and types of the arrays of a state."""
    settings = config.settings(capacity)
    if slots and (slots.window < settings.window or slots.rank < settings.max_rank):
        raise ValueError(f"it has room for {slots.window} slices of {settings.window}, {slots.rank} components")
    with precision(config):
        core: Core = jax.eval_shape(lambda: init_core(settings, shape, entries, slots))
    return core


def _core(expected: Core, arrays: dict[str, Any], config: Config) -> Core:
    leaves, tree = jax.tree_util.tree_flatten_with_path(expected)
    with precision(config):
        found = [
            # A copy of its own, for a step takes over its memory; jnp.asarray would compile something for every shape.
            jax.device_put(np.array(_fitting(arrays, name_of(keys), leaf.shape, leaf.dtype)))
            for keys, leaf in leaves
        ]
    core: Core = jax.tree_util.tree_unflatten(tree, found)
    return core


def _cross_predicted(expected: Core, arrays: dict[str, Any], config: Config) -> CrossPrediction:
    like = expected.window.values
    found = [np.array(_fitting(arrays, name, like.shape[1:], like.dtype)) for name in CROSS_PREDICTED]
    with precision(config):
        return CrossPrediction(*jax.device_put(found))


def _fitting(arrays: dict[str, Any], name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    array = arrays[name]
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} is {array.dtype}{array.shape}, not {np.dtype(dtype)}{shape}")
    return array
