"""Many trackers in a checkpoint: the arrays of each group, and what the host remembers of every member."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.history import REPEATS_ONLY, History
from undertow.inputs.dense import Slice
from undertow.serialization.container import CheckpointError
from undertow.serialization.models import stored_slots
from undertow.tracker import earlier, files, past_files
from undertow.tracker.fleet import Trackers
from undertow.tracker.frame import Frame
from undertow.tracker.group import FREE, Group
from undertow.tracker.predictors.cp import CP
from undertow.tracker.state import Past

Checkpoint = tuple[dict[str, Any], dict[str, Any]]
REPEATS = ("repeats", "held")
"""What is counted of a stream that repeats itself."""
FRAME = {"origin": np.float64, "unit": np.float64, "scale": np.int64}


def holds_trackers(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds a fleet of trackers."""
    return checkpoint[0].get("kind") == "Fleet" and checkpoint[0].get("model") == "tracker"


def packed(trackers: Trackers) -> Checkpoint:
    """Header and arrays."""
    groups = [
        {"size": len(group), "configs": [asdict(config) for config in group.configs]} for group in trackers.groups
    ]
    arrays: dict[str, Any] = {}
    for number, group in enumerate(trackers.groups):
        positions = np.flatnonzero(group.members != FREE)
        held = jax.tree.map(lambda leaf, own=positions: np.asarray(leaf)[own], group.arrays)
        arrays |= {f"{number}.positions": positions, f"{number}.members": group.members[positions]}
        arrays |= {f"{number}.steps": group.steps[positions], **files.named(str(number), held)}
    pasts = [trackers.pasts[member] for member in trackers.ids.tolist()]
    recent = [one for past in pasts for one in past.recent]
    blank = np.zeros((0, *trackers.shape), np.float32)
    arrays |= {
        "framed": np.array([past.frame is not None for past in pasts], np.bool_),
        "seen": np.array([past.seen for past in pasts], np.int64),
        "used": np.array([past.used for past in pasts], np.int64),
        "recent": np.array([len(past.recent) for past in pasts], np.int64),
        "recent.values": np.stack([one.values for one in recent]) if recent else blank,
        "recent.mask": np.stack([one.mask for one in recent]) if recent else blank > 0,
    }
    histories = [past.history.to_header() for past in pasts]
    for name in REPEATS:
        arrays[name] = np.array([one[name] for one in histories], np.int64)
    digests = b"".join(bytes.fromhex(one["last"] or "0" * 32) for one in histories)
    arrays["last"] = np.frombuffer(digests, np.uint8).reshape(-1, 16)
    for name, kind in FRAME.items():
        arrays[f"frame.{name}"] = np.array([getattr(past.frame or Frame(), name) for past in pasts], kind)
    header = {"model": "tracker", "tracker_version": files.STATE_VERSION, "groups": groups}
    header["clocks"] = [asdict(past.clock) for past in pasts]
    novelties = [past_files.of_novelty(past.novelty) for past in pasts]
    arrays |= {name: np.stack([one[name] for one in novelties]) for name in (novelties[0] if pasts else ())}
    if trackers.period is None:
        return header, arrays
    for number, past in enumerate(pasts):
        found = past_files.arrays(past.season, past.ahead)
        arrays |= {f"past.{number}.{name}": array for name, array in found.items()}
    earlier = [past_files.header(past.season, past.ahead) for past in pasts]
    return header | {"period": trackers.period, "pasts": earlier}, arrays


def unpacked(checkpoint: Checkpoint, name: str) -> Trackers:
    """What `packed` was given.

    Raises:
        CheckpointError: It does not fit this version.
    """
    header, arrays = checkpoint
    if header.get("tracker_version") in earlier.READABLE:
        arrays = earlier.completed(arrays)
    elif header.get("tracker_version") != files.STATE_VERSION:
        raise CheckpointError(
            f"checkpoint {name} holds trackers of state version {header.get('tracker_version')!r}, this Undertow reads "
            f"version {files.STATE_VERSION}: use the version of undertow that wrote it."
        )
    try:
        return _trackers(header, arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {name} does not fit this Undertow ({error}): "
            "use the version of undertow that wrote it, or start a new fleet."
        ) from error


def _trackers(header: dict[str, Any], arrays: dict[str, Any]) -> Trackers:
    period = header.get("period")
    trackers = Trackers(tuple(int(size) for size in header["shape"]), None if period is None else int(period))
    earlier: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        if name.startswith("past."):
            member_at, _, plain = name.removeprefix("past.").partition(".")
            earlier.setdefault(int(member_at), {})[plain] = array
    trackers.ids = np.asarray(arrays["ids"], np.int64)
    trackers.groups = [_group(trackers, number, one, arrays) for number, one in enumerate(header["groups"])]
    ends = np.cumsum(arrays["recent"])
    values, mask = arrays["recent.values"], arrays["recent.mask"]
    if values.shape != mask.shape or values.shape[1:] != trackers.shape or mask.dtype != bool:
        raise ValueError(f"recent slices are {values.dtype}{values.shape}")
    novelties = {name: array for name, array in arrays.items() if name.startswith("novelty.")}
    held = header["tracker_version"] == files.STATE_VERSION
    entries = math.prod(trackers.shape)
    for index, member in enumerate(trackers.ids.tolist()):
        first = int(ends[index]) - int(arrays["recent"][index])
        recent = tuple(Slice(values[one].copy(), mask[one].copy()) for one in range(first, int(ends[index])))
        frame = Frame(*(arrays[f"frame.{part}"][index].item() for part in FRAME)) if arrays["framed"][index] else None
        seen, used = (int(arrays[part][index]) for part in ("seen", "used"))
        past = Past(frame, recent, seen, used, _history(seen, index, arrays))
        own = {name: array[index] for name, array in novelties.items()}
        past = replace(past, novelty=past_files.novelty(own, entries, held))
        if "clocks" in header:  # earlier fleets knew no times: theirs begin with the next slice
            past = replace(past, clock=past_files.clock({"clock": header["clocks"][index]}))
        if period is not None:
            saved, own = header["pasts"][index], earlier.get(index, {})
            season, ahead = past_files.season(saved, own, entries), past_files.ahead(saved, own, entries)
            past = replace(past, season=season, ahead=ahead)
        trackers.pasts[member] = past
    return trackers


def _history(seen: int, index: int, arrays: dict[str, Any]) -> History:
    """Of one member."""
    digest = np.asarray(arrays["last"][index], np.uint8)
    last = digest.tobytes().hex() if digest.any() else ""
    counted = {name: int(arrays[name][index]) for name in REPEATS}
    return History.from_header(REPEATS_ONLY.to_header() | counted | {"seen": seen, "last": last}, seen)


def _group(trackers: Trackers, number: int, saved: dict[str, Any], arrays: dict[str, Any]) -> Group:
    configs, size, positions = (
        [Config(**one) for one in saved["configs"]],
        int(saved["size"]),
        arrays[f"{number}.positions"],
    )

    def group_of(models: Iterable[CP]) -> Group:
        return Group.of(replace(trackers.blank, cps=tuple(models)), size)

    group = group_of(CP.new(config, trackers.shape) for config in configs)
    stored = [stored_slots(arrays, f"{number}.models.{one}.", "active", 1) for one in range(len(configs))]
    as_stored = group_of(CP.new(config, trackers.shape, own) for config, own in zip(configs, stored, strict=True))
    expected = jax.tree.map(lambda leaf: np.asarray(leaf)[positions], as_stored.arrays)
    # In older files entries of large slices do not know of each other yet.
    fresh = files.named(f"{number}.core.neighbours", expected.core.neighbours)
    held = files.read(str(number), expected, fresh | arrays)

    def filled(leaf: Any, own: Any) -> Any:
        whole = np.array(leaf)  # on the host, where nothing is compiled for it
        whole[(positions, *map(slice, own.shape[1:]))] = own  # files of earlier versions had no empty slots
        return whole

    group.arrays = jax.device_put(jax.tree.map(filled, group.arrays, held))
    group.steps[positions], group.members[positions] = arrays[f"{number}.steps"], arrays[f"{number}.members"]
    return group
