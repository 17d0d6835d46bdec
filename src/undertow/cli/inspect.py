"""``undertow inspect``: what a source or a store holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from undertow.cli.grouping import grouped
from undertow.cli.source_options import ReadingOptions
from undertow.cli.terminal import literal
from undertow.runs.store.layout import EVENTS, WEIGHTS

_SECOND = 10**9
_UNITS = {
    "day": 86400 * _SECOND,
    "hour": 3600 * _SECOND,
    "minute": 60 * _SECOND,
    "second": _SECOND,
    "millisecond": 10**6,
    "microsecond": 10**3,
}
"""Of times, in nanoseconds."""

if TYPE_CHECKING:
    from undertow.runs.store.reader import StoredRun


@grouped
def inspect(
    source: Annotated[str, typer.Argument(help="A source, or a store of undertow run.", show_default=False)],
    reading: ReadingOptions,
    verify: Annotated[bool, typer.Option("--verify", help="Of a store: read everything, compare checksums.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object.")] = False,
) -> None:
    """Show what a source or a store holds: shape, labels, times, gaps, range; for a store also how the run went.

    A source is read for ten seconds, or to its end: at what a run would stop is shown as a problem, with what to do,
    and from where on nothing was checked.

    Examples:

    \b
      undertow inspect lobby.mp4
      undertow inspect flows.csv --time t --modes src,dst --value bytes
      undertow inspect lobby-undertow.zarr --json
      undertow inspect lobby-undertow.zarr --verify
    """
    options = reading.given()
    from undertow.runs.store.reader import is_store

    store = is_store(Path(source)) and not options
    if verify and not store:
        raise ValueError(f"--verify is for stores of undertow run, got {source}: leave it out")
    verified = {"verified": _verified(Path(source))} if verify else {}
    facts = (_store_facts(Path(source)) if store else _source_facts(source, options)) | verified
    if as_json:
        print(json.dumps(facts, default=str))
        return
    table = Table(title=literal(source), title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, fact in facts.items():
        if fact not in (None, [], {}, ""):
            table.add_row(name.replace("_", " "), literal(_shown(fact)))
    Console().print(table)


def _verified(path: Path) -> str:
    from undertow.runs import StoreError
    from undertow.runs.verify import verify

    found = verify(path)
    if found.damage:
        more = f", and {len(found.damage) - 3} more" if len(found.damage) > 3 else ""
        raise StoreError(
            f"{path} is damaged ({'; '.join(found.damage[:3])}{more}): restore it from a copy, or run again with "
            "--overwrite"
        )
    note = "" if found.checksums else " that can be seen without checksums, which this store was begun without"
    return f"{found.chunks} chunks, no damage{note}"


def _source_facts(source: str, options: dict[str, Any]) -> dict[str, Any]:
    from undertow.runs.store.times import Times
    from undertow.sources.describe import describe

    found = describe(source, check=Times.checked(), **options)
    found["silent"] = _few(found["silent"])
    found["labels"] = {name: _few(labels) for name, labels in found["labels"].items()}
    times = {key: _moment(found[key]) for key in ("first_time", "last_time", "step") if found[key] is not None}
    return {"kind": "source", **found, **times}


def _store_facts(path: Path) -> dict[str, Any]:
    from undertow.runs.store.reader import open_store

    run = open_store(path)
    attributes, times = run.dataset.attrs, run.times
    steps = {name: run.per_slice(name) for name in ("rank", "noise_std", "observed", "outlier_rate", "status")}
    return {
        "kind": "store",
        "model": attributes.get("kind"),
        "source": run.source,
        "slices": run.length,
        "shape": list(run.shape),
        "modes": list(run.dims),
        "kept": list(run.kept),
        "time_zone": attributes.get("time_zone"),
        "first_time": str(times[0]) if run.length else None,
        "last_time": str(times[-1]) if run.length else None,
        "rank": int(steps["rank"][-1]) if run.length else None,
        "noise_std": float(steps["noise_std"][-1]) if run.length else None,
        "observed": float(steps["observed"].mean()) if run.length else None,
        "outlier_rate": float(steps["outlier_rate"].mean()) if run.length else None,
        "alerts": attributes.get("alerts"),
        "threshold": run.threshold,
        "false_alarms": attributes.get("false_alarms"),
        "weights": {name: round(float(mean), 3) for name, mean in zip(run.predictors, _weights(run), strict=False)},
        "slices_with_events": sum(bool(str(text)) for text in run.per_slice(EVENTS)) if run.predictors else None,
        "slices_flagged": sum(str(text) != "ok" for text in steps["status"]),
        "megabytes": round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 2**20, 2),
        "settings": run.settings,
    }


def _weights(run: StoredRun) -> Any:
    """The mean weight of every predictor of a tracker; nothing if there is none, or no slice."""
    return run.per_slice(WEIGHTS).mean(axis=0) if run.predictors and run.length else ()


def _moment(time: Any) -> str:
    """A time or a difference of times, no longer than it needs to be."""
    if isinstance(time, np.datetime64):
        text = str(np.datetime_as_string(time.astype("datetime64[ns]")))
        return text.rstrip("0").rstrip(".") if "." in text and text[-1] == "0" else text
    if not isinstance(time, np.timedelta64):
        return str(time)
    nanoseconds = int(time.astype("timedelta64[ns]").astype(np.int64))
    for name, size in _UNITS.items():
        if nanoseconds % size == 0:
            return f"{nanoseconds // size} {name}{'' if nanoseconds == size else 's'}"
    return f"{nanoseconds} nanoseconds"


def _few(labels: tuple[Any, ...]) -> list[str]:
    texts = [str(label) for label in labels]
    return texts if len(texts) <= 8 else [*texts[:4], "…", *texts[-2:]]


def _shown(fact: Any) -> str:
    if isinstance(fact, float):
        return f"{fact:.4g}"
    if isinstance(fact, dict):
        return "\n".join(f"{name}: {_shown(value)}" for name, value in fact.items())
    if isinstance(fact, (list, tuple)):
        return (" × " if all(isinstance(part, int) for part in fact) else ", ").join(map(str, fact))
    return str(fact)
