"""``undertow inspect``: what a source or a store holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from undertow.cli.grouping import grouped
from undertow.cli.source_options import ReadingOptions


@grouped
def inspect(
    source: Annotated[str, typer.Argument(help="A source, or a store of undertow run.", show_default=False)],
    reading: ReadingOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object.")] = False,
) -> None:
    """Show what a source or a store holds: shape, labels, times, gaps, range; for a store also how the run went.

    Examples:

    \b
      undertow inspect lobby.mp4
      undertow inspect flows.csv --time t --modes src,dst --value bytes
      undertow inspect lobby-undertow.zarr --json
    """
    options = reading.given()
    from undertow.runs.store.reader import is_store

    facts = _store_facts(Path(source)) if is_store(Path(source)) and not options else _source_facts(source, options)
    if as_json:
        print(json.dumps(facts, default=str))
        return
    table = Table(title=escape(source), title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, fact in facts.items():
        if fact not in (None, [], {}, ""):
            table.add_row(name.replace("_", " "), escape(_shown(fact)))
    Console().print(table)


def _source_facts(source: str, options: dict[str, Any]) -> dict[str, Any]:
    from undertow.sources.describe import describe

    found = describe(source, **options)
    found["labels"] = {name: _few(labels) for name, labels in found["labels"].items()}
    times = {key: str(found[key]) for key in ("first_time", "last_time", "step") if found[key] is not None}
    return {"kind": "source", **found, **times}


def _store_facts(path: Path) -> dict[str, Any]:
    from undertow.runs.store.reader import open_store

    run = open_store(path)
    steps, times = run.dataset, run.times
    return {
        "kind": "store",
        "source": run.source,
        "slices": run.length,
        "shape": list(run.shape),
        "modes": list(run.dims),
        "kept": list(run.kept),
        "first_time": str(times[0]) if run.length else None,
        "last_time": str(times[-1]) if run.length else None,
        "rank": int(steps["rank"].values[-1]) if run.length else None,
        "noise_std": float(steps["noise_std"].values[-1]) if run.length else None,
        "observed": float(steps["observed"].values.mean()) if run.length else None,
        "outlier_rate": float(steps["outlier_rate"].values.mean()) if run.length else None,
        "alerts": steps.attrs.get("alerts"),
        "threshold": run.threshold,
        "slices_flagged": sum(str(text) != "ok" for text in steps["status"].values),
        "megabytes": round(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 2**20, 2),
        "settings": run.settings,
    }


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
