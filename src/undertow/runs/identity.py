"""What makes two runs the same run: source, settings, layout. A store is gone on with by the same run only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undertow.runs.errors import RunError
from undertow.runs.store.alerts import Format
from undertow.runs.store.layout import Layout, Precision, chunk_length, distinct
from undertow.runs.store.times import Times
from undertow.sources.base import Stream

_CALLED = {"model": "the settings of the model", "threshold": "threshold", "alerts": "alerts", "layout": "the layout"}


@dataclass(frozen=True)
class Output:
    """What a run is asked to write."""

    keep: tuple[str, ...]
    precision: Precision
    alerts: Format | None
    threshold: float
    checkpoint_every: int | None

    def layout(self, stream: Stream, times: Times) -> Layout:
        """Of the store for this stream."""
        return Layout(
            shape=tuple(stream.shape),
            dims=distinct(stream.dims, stream.time_name),
            labels=tuple(None if labels is None else tuple(labels) for labels in stream.labels),
            time_name=stream.time_name,
            times=times,
            keep=self.keep,
            precision=self.precision,
            chunk=chunk_length(stream.shape, self.precision, self.checkpoint_every),
        )


def identify(stream: Stream, model: Any, output: Output, times: Times) -> dict[str, Any]:
    """As plain JSON, to be kept in checkpoints."""
    params: dict[str, Any] = model.get_params() if hasattr(model, "get_params") else {}
    identity = {
        "source": stream.fingerprint,
        "name": stream.name,
        "model": params,
        "threshold": output.threshold,
        "alerts": output.alerts,
        "layout": output.layout(stream, times).identity(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return plain


def describe(stream: Stream, model: Any, output: Output, identity: dict[str, Any]) -> dict[str, Any]:
    """What the store says about itself; text and numbers only, so that every format can carry it."""
    from undertow import __version__

    config = getattr(model, "config", None)
    return {
        "source": stream.name,
        "fingerprint": stream.fingerprint,
        "undertow": __version__,
        "threshold": output.threshold,
        "alerts": output.alerts or "none",
        "model": json.dumps(identity["model"]),
        "settings": json.dumps(identity["model"] if config is None else vars(config), default=str),
    }


def refuse_another(stored: dict[str, Any], asked: dict[str, Any], folder: Path) -> None:
    """A store goes on with the source and settings it began with, or not at all."""
    if stored["source"] != asked["source"]:
        raise RunError(
            f"{folder} holds results of {stored['name']}, read in one certain way, and this is another source or way: "
            "use the same command as before with --resume, or name another store with --store"
        )
    for key, name in _CALLED.items():
        before, now = stored[key], asked[key]
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            parts = sorted(part for part in {*before, *now} if before.get(part) != now.get(part))
            name = f"{name} ({', '.join(parts)})"
        raise RunError(
            f"{folder} was begun with another value of {name}: use the same command as before with --resume, "
            "or name another store with --store"
        )
