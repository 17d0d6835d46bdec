"""Season, forecasts, novelty and times of a tracker in a checkpoint."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.tracker.ahead import BINS, CANDIDATES, MOST_SCORED, Ahead, Pending, Scored
from undertow.tracker.clock import Clock
from undertow.tracker.novelty import Novelty, start
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.season import LEVEL, Season


def header(season: Season | None, ahead: Ahead) -> dict[str, Any]:
    """What is no array."""
    assert season is not None  # only while slices are learned anew
    return {
        "season": {
            "given": season.given,
            "clock": season.clock,
            "periods": list(season.periods),
            "filled": season.filled,
            "history": None if season.history is None else len(season.history),
        },
        "pending": {str(horizon): [one.due for one in several] for horizon, several in sorted(ahead.pending.items())},
        "scored": {str(horizon): [one.factor, one.count, one.excess] for horizon, one in sorted(ahead.scored.items())},
    }


def arrays(season: Season | None, ahead: Ahead) -> dict[str, Any]:
    """By name."""
    assert season is not None
    found: dict[str, Any] = {}
    for number, (profile, cycles) in enumerate(zip(season.profiles, season.cycles, strict=True)):
        found |= {f"season.profile.{number}": profile, f"season.cycles.{number}": cycles}
    if season.latest is not None:
        found["season.latest"] = season.latest
    if season.history is not None:
        found["season.history"] = season.history[: season.filled]
    if season.deviation is not None:
        found |= {f"season.deviation.{name}": np.asarray(leaf) for name, leaf in vars(season.deviation).items()}
    for horizon, several in sorted(ahead.pending.items()):
        found[f"pending.{horizon}.means"] = np.stack([one.means for one in several])
        found[f"pending.{horizon}.std"] = np.stack([one.std for one in several])
    for horizon, scored in sorted(ahead.scored.items()):
        found |= {f"scored.{horizon}.gram": scored.gram, f"scored.{horizon}.spread": scored.spread}
    return found


def season(header: dict[str, Any], arrays: dict[str, Any], entries: int) -> Season:
    """What was remembered of earlier cycles."""
    saved = header["season"]
    periods = tuple(int(one) for one in saved["periods"])
    profiles = [_array(arrays, f"season.profile.{number}", (one, entries)) for number, one in enumerate(periods)]
    cycles = [_array(arrays, f"season.cycles.{number}", (one,), np.int32) for number, one in enumerate(periods)]
    filled, size = int(saved["filled"]), saved["history"]
    history = None
    if size is not None:
        history = np.zeros((int(size), entries), np.float32)
        history[:filled] = _array(arrays, "season.history", (min(filled, int(size)), entries))
    return Season(
        entries=entries,
        given=int(saved["given"]),
        clock=int(saved["clock"]),
        periods=periods,
        profiles=tuple(profiles),
        cycles=tuple(cycles),
        latest=_array(arrays, "season.latest", (periods[0], entries)) if periods else None,
        deviation=_deviation(arrays, entries, len(periods)) if periods else None,
        history=history,
        filled=filled,
    )


def ahead(header: dict[str, Any], arrays: dict[str, Any], entries: int) -> Ahead:
    """Forecasts that are pending, and how earlier ones turned out."""
    size, entries = len(CANDIDATES), min(entries, MOST_SCORED)
    pending = {}
    for horizon, dues in header["pending"].items():
        means = _array(arrays, f"pending.{horizon}.means", (len(dues), size, entries))
        std = _array(arrays, f"pending.{horizon}.std", (len(dues), entries))
        pending[int(horizon)] = tuple(map(Pending, map(int, dues), means, std))
    scored = {
        int(horizon): Scored(
            _array(arrays, f"scored.{horizon}.gram", (size, size)),
            _array(arrays, f"scored.{horizon}.spread", (BINS,)),
            float(factor),
            int(count),
            *map(float, excess),
        )
        for horizon, (factor, count, *excess) in header["scored"].items()
    }
    return Ahead(pending, scored, *map(int, header["season"]["periods"][:1]))


def of_novelty(known: Novelty | None) -> dict[str, Any]:
    """By name."""
    return {} if known is None else {f"novelty.{name}": np.asarray(part) for name, part in vars(known).items()}


def novelty(arrays: dict[str, Any], entries: int, held: bool) -> Novelty | None:
    """The whole past, if the file holds it; else it begins with the next slice."""
    fresh = start(entries)
    if fresh is None or not held:
        return fresh
    parts = {name: _array(arrays, f"novelty.{name}", np.shape(part), np.float64) for name, part in vars(fresh).items()}
    return Novelty(**{**parts, "newest": float(parts["newest"])})  # type: ignore[arg-type]


def clock(header: dict[str, Any]) -> Clock:
    """Times of the slices."""
    saved = header["clock"]
    last = None if saved["last"] is None else float(saved["last"])
    dated = bool(saved.get("dated", False))
    return Clock(last, tuple(float(one) for one in saved["steps"]), int(saved["slices"]), dated)


def _deviation(arrays: dict[str, Any], entries: int, profiles: int) -> LevelState:
    expected: LevelState = jax.eval_shape(lambda: LEVEL.init(entries))
    leaves = {
        name: jnp.asarray(_array(arrays, f"season.deviation.{name}", (profiles, *leaf.shape), leaf.dtype))
        for name, leaf in vars(expected).items()
    }
    return LevelState(**leaves)


def _array(arrays: dict[str, Any], name: str, shape: tuple[int, ...], kind: Any = np.float32) -> np.ndarray:
    """Checked, and in memory of its own: seasons write into theirs."""
    found = arrays[name]
    if found.shape != shape or found.dtype != kind:
        raise ValueError(f"{name} is {found.dtype}{found.shape}, not {np.dtype(kind)}{shape}")
    return np.array(found)
