"""A tracker in a checkpoint: which arrays, under which names."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.history import History
from undertow.engine.state import State
from undertow.inputs.dense import Slice
from undertow.model.settings import Slots
from undertow.model.step import init_core
from undertow.programs.runtime import sent
from undertow.serialization.container import CheckpointError
from undertow.serialization.models import stored_slots
from undertow.tracker import earlier, neighbours, past_files
from undertow.tracker.core import Core, fresh_core
from undertow.tracker.frame import Frame
from undertow.tracker.predictors.cp import CP
from undertow.tracker.state import Tracking, caught_up

STATE_VERSION = 11
"""Raise it whenever the meaning or the names of the arrays change."""


def packed(state: Tracking) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays."""
    state = caught_up(state)
    header = {
        "kind": "Tracker",
        "state_version": STATE_VERSION,
        "shape": list(state.shape),
        "frame": None if state.frame is None else asdict(state.frame),
        "seen": state.seen,
        "used": state.used,
        "recent": len(state.recent),
        "history": state.history.to_header(),
        "clock": asdict(state.clock),
        **past_files.header(state.season, state.ahead),
        "models": [
            {
                "config": asdict(model.state.config),
                "capacity": model.state.capacity,
                "missing": [int(count) for count in model.state.missing],
                "steps": model.state.steps,
                "rank": int(model.rank),
            }
            for model in state.cps
        ],
    }
    arrays = named("core", state.core)
    for number, model in enumerate(state.cps):
        arrays |= named(f"cp.{number}", model.state.core)
    arrays |= past_files.arrays(state.season, state.ahead) | past_files.of_novelty(state.novelty)
    if state.heard:
        header["heard"] = len(state.heard)
        arrays |= {f"heard.{mode}": one for mode, one in enumerate(state.heard)}
    for number, one in enumerate(state.recent):
        arrays |= {f"recent.{number}.values": one.values, f"recent.{number}.mask": one.mask}
    return header, arrays


def with_history(header: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any]:
    """A header with what `view.history.History.saved` gave."""
    if known is None:
        return header
    frame = known["frame"]
    return {**header, "looked_at": {**known, "frame": None if frame is None else asdict(frame)}}


def history_in(header: dict[str, Any]) -> tuple[dict[str, Any], Frame | None] | None:
    """What `History.go_on` takes; None in files that have nothing of it."""
    known = header.get("looked_at")
    if known is None:
        return None
    return known, None if known["frame"] is None else Frame(**known["frame"])


def unpacked(checkpoint: tuple[dict[str, Any], dict[str, Any]], name: str) -> Tracking:
    """What `packed` was given.

    Raises:
        CheckpointError: It holds something else, or does not fit this version.
    """
    header, arrays = checkpoint
    if header.get("kind") == "Tracker" and header.get("state_version") in earlier.READABLE:
        arrays = earlier.completed(arrays)
    elif header.get("kind") != "Tracker" or header.get("state_version") != STATE_VERSION:
        raise CheckpointError(
            f"checkpoint {name} holds {header.get('kind')!r} of state version {header.get('state_version')!r}, this "
            f"Undertow reads trackers of version {STATE_VERSION}: use the version of undertow that wrote it."
        )
    try:
        return _tracking(header, arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {name} does not fit this Undertow ({error}): "
            "use the version of undertow that wrote it, or start a new tracker."
        ) from error


def _tracking(header: dict[str, Any], arrays: dict[str, Any]) -> Tracking:
    shape = tuple(int(size) for size in header["shape"])
    models = []
    for number, saved in enumerate(header["models"]):
        config = Config(**saved["config"])
        slots = stored_slots(arrays, f"cp.{number}.", "active")
        expected = _expected_cp(config, saved["capacity"], shape, slots, _double())
        core = read(f"cp.{number}", expected, arrays)
        missing = tuple(int(count) for count in saved["missing"])
        models.append(CP(State(config, shape, 1.0, int(saved["steps"]), core, missing), int(saved["rank"])))
    entries = int(np.prod(shape))
    recent = tuple(_slice(number, shape, arrays) for number in range(int(header["recent"])))
    return Tracking(
        shape=shape,
        frame=None if header["frame"] is None else Frame(**header["frame"]),
        core=_core(shape, len(models), arrays),
        cps=tuple(models),
        recent=recent,
        seen=int(header["seen"]),
        used=int(header["used"]),
        history=History.from_header(header["history"], int(header["seen"])),
        novelty=past_files.novelty(arrays, entries, header["state_version"] == STATE_VERSION),
        season=past_files.season(header, arrays, entries),
        ahead=past_files.ahead(header, arrays, entries),
        clock=past_files.clock(header),
        heard=tuple(np.asarray(arrays[f"heard.{mode}"], np.int64) for mode in range(int(header.get("heard", 0)))),
    )


@lru_cache(maxsize=64)
def _expected_cp(config: Config, capacity: int | None, shape: tuple[int, ...], slots: Slots, double: bool) -> Any:
    """Shapes and types of a CP model. Kept: to find them takes longer than all else that is read."""
    return jax.eval_shape(lambda: init_core(config.settings(capacity), shape, None, slots))


def _core(shape: tuple[int, ...], models: int, arrays: dict[str, Any]) -> Core:
    """Everything else; in older files entries of large slices do not know of each other yet."""
    fresh = named("core.neighbours", neighbours.init(shape))
    core: Core = read("core", _expected_core(shape, models, _double()), fresh | arrays)
    return core


@lru_cache(maxsize=64)
def _expected_core(shape: tuple[int, ...], models: int, double: bool) -> Any:
    """Shapes and types of everything else."""
    return jax.eval_shape(lambda: fresh_core(int(np.prod(shape)), models, shape))


def _double() -> bool:
    """Types depend on it."""
    return bool(jax.numpy.zeros(()).dtype == np.float64)


def _slice(number: int, shape: tuple[int, ...], arrays: dict[str, Any]) -> Slice:
    values, mask = arrays[f"recent.{number}.values"], arrays[f"recent.{number}.mask"]
    if values.shape != shape or mask.shape != shape or mask.dtype != bool or values.dtype.kind != "f":
        raise ValueError(f"recent.{number} is {values.dtype}{values.shape}")
    return Slice(values, mask)


def named(prefix: str, tree: Any) -> dict[str, Any]:
    """The arrays of a tree under the names of their fields."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(prefix, keys): np.asarray(leaf) for keys, leaf in leaves}


def read(prefix: str, expected: Any, arrays: dict[str, Any]) -> Any:
    """What `named` was given; `expected` has the shapes and types of its arrays."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(expected)
    found = []
    for keys, leaf in leaves:
        array = arrays[_name(prefix, keys)]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ValueError(f"{_name(prefix, keys)} is {array.dtype}{array.shape}, not {leaf.dtype}{leaf.shape}")
        found.append(sent(array))
    return jax.tree_util.tree_unflatten(tree, found)


def _name(prefix: str, keys: Any) -> str:
    return ".".join([prefix, *(str(getattr(key, "name", getattr(key, "idx", key))) for key in keys)])
