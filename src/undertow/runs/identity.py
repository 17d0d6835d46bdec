"""What makes two runs the same run: source, settings, layout. A store is resumed by the same run only."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from undertow.incidents import FalseAlarms
from undertow.runs.errors import RunError
from undertow.runs.options import RunOptions
from undertow.runs.store.layout import Layout
from undertow.serialization.former import LATER, current_params
from undertow.sources.base import Stream

_COMPARED = {
    "model": "model settings",
    "threshold": "threshold",
    "alerts": "alerts",
    "layout": "layout",
    "spreadsheet_safe": "spreadsheet_safe",
    "false_alarms": "false_alarms (--false-alarms)",
    "slice_seconds": "slice_seconds",
}

_OPTIONS = {"Tracker": "tracker", "RobustCP": "cp"}  # of undertow run


def identify(stream: Stream, model: Any, options: RunOptions, layout: Layout) -> dict[str, Any]:
    """The canonical form of source, settings and output options: plain JSON, kept in checkpoints."""
    identity = {
        "source": stream.fingerprint,
        "remedies": _remedies(getattr(stream, "remedies", {}), options.on_bad),
        "name": stream.name,
        "kind": _kind(model),
        "model": model.get_params() if hasattr(model, "get_params") else {},
        "threshold": options.threshold,
        "alerts": options.alerts,
        "layout": layout.identity(),
    }
    if options.spreadsheet_safe:  # stores begun by earlier versions do not name it
        identity["spreadsheet_safe"] = True
    if options.false_alarms is not None:
        identity["false_alarms"] = FalseAlarms.parse(options.false_alarms).text
    if options.slice_seconds is not None:
        identity["slice_seconds"] = options.slice_seconds
    plain: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return plain


def _remedies(of_stream: dict[str, str], on_bad: str) -> dict[str, str]:
    """What happens to bad input: to rows and values in the source, to slices here."""
    return {**of_stream, "on_bad": "skip" if "skip" in (on_bad, of_stream.get("on_bad")) else "stop"}


def describe(stream: Stream, model: Any, options: RunOptions, identity: dict[str, Any]) -> dict[str, Any]:
    """The attributes of the store; text and numbers only, so that every format can carry them."""
    from undertow import __version__

    config = getattr(model, "config", None)
    return {
        "source": stream.name,
        "fingerprint": stream.fingerprint,
        "undertow": __version__,
        "threshold": options.threshold,
        "alerts": options.alerts or "none",
        **({"kind": identity["kind"]} if identity["kind"] else {}),
        "model": json.dumps(identity["model"]),
        **({"spreadsheet_safe": "yes"} if options.spreadsheet_safe else {}),
        **({"false_alarms": identity["false_alarms"]} if "false_alarms" in identity else {}),
        **getattr(stream, "attributes", {}),
        "settings": json.dumps(identity["model"] if config is None else vars(config), default=str),
    }


def require_same(stored: dict[str, Any], asked: dict[str, Any], folder: Path, former: Collection[str] = ()) -> None:
    """Refuse to resume a store with another source or other settings; ``former`` are earlier names of the source."""
    remedy = "use the same command as before with --resume, or name another store with --store"
    is_other = stored["source"] not in (asked["source"], *former)
    before, now = stored["layout"], asked["layout"]
    is_renamed = stored["name"] != asked["name"] or before["dims"] != now["dims"]
    if is_other and not is_renamed and before["labels"] != now["labels"]:
        raise RunError(
            f"{asked['name']} has other labels than when {folder} was begun: give those of the store with labels "
            "(--labels) and leave new ones out with --on-bad skip, or begin another store with --store, with "
            "--capacity for labels to come"
        )
    if is_other:
        raise RunError(
            f"{folder} holds results of {stored['name']}, and this is another source, or the same one read with "
            f"other options: {remedy}"
        )
    _require_same_kind(stored, asked, folder)
    for key, name in _COMPARED.items():
        before, now = stored.get(key), asked.get(key)
        if key == "model" and before:
            before = {**{name: LATER[name] for name in LATER if name in asked[key]}, **current_params(before)}
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            parts = sorted(part for part in {*before, *now} if before.get(part) != now.get(part))
            name = f"{name} ({', '.join(parts)})"
        raise RunError(f"{folder} was started with other values of {name}: {remedy}")


def _require_same_kind(stored: dict[str, Any], asked: dict[str, Any], folder: Path) -> None:
    """Refuse to resume with another kind of model; checkpoints of earlier versions name none."""
    kind = stored.get("kind", "RobustCP" if "preset" in stored["model"] else "")
    if kind != asked["kind"]:
        option = f" (--model {_OPTIONS[kind]})" if kind in _OPTIONS else ""
        raise RunError(
            f"{folder} was started with {kind or 'a model of its own'}, and this is {asked['kind'] or 'another one'}: "
            f"use the same model{option}, or name another store with --store"
        )


def _kind(model: Any) -> str:
    """Which of Undertow's models this is; "" if none."""
    return next((one.__name__ for one in type(model).__mro__ if one.__name__ in _OPTIONS), "")


def other_remedies(stored: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """A notice if bad input is now treated in another way than before, which is allowed."""
    before, now = stored.get("remedies", {}), asked["remedies"]
    changed = [f"{name} {before[name]} → {now[name]}" for name in now if name in before and before[name] != now[name]]
    return f"bad input is treated in another way from here on: {', '.join(changed)}" if changed else None
