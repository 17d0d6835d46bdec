"""``undertow demo``: a day of traffic matrices with gaps and anomalies through `undertow.run`, then the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from undertow.cli.live import LivePage, live_page
from undertow.cli.run_bar import RunBar
from undertow.cli.signals import SIGNALS
from undertow.cli.terminal import show_file
from undertow.lab import metrics
from undertow.lab.synthetic.streams import SyntheticStream, traffic

if TYPE_CHECKING:
    from undertow.runs import RunSummary

Floats = NDArray[np.float64]
_WARM_UP = 20  # slices of warm-up, in which no method is compared
_QUICK_SLICES = 60
_FIRST_TIME = np.datetime64("2024-03-04T00:00", "m")  # a Monday
_MINUTES = 5


@dataclass(frozen=True)
class Estimates:
    """Results for every slice of a stream, stacked over time."""

    mean: Floats
    std: Floats
    outlier_probability: Floats


def demo(
    slices: Annotated[int, typer.Option(min=2, help="How many traffic matrices; 288 are a day.")] = 288,
    out: Annotated[Path, typer.Option(help="Folder for store, report and picture.")] = Path("undertow-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another network.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help=f"At most {_QUICK_SLICES} slices.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Show a page in the browser while it runs.")] = False,
) -> None:
    """Clean up a generated day of network traffic: fill the gaps, find the anomalies, with error bars."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad folder costs no time
    stream = traffic(slices=min(slices, _QUICK_SLICES) if quick else slices, seed=seed)
    nodes = stream.shape[0]
    console.print(
        f"[bold]{len(stream)} traffic matrices[/] of {nodes}×{nodes} routers, {stream.hidden.mean():.0%} of the "
        f"entries missing, {int((stream.outlier_mask & stream.mask).sum())} anomalous measurements among the rest."
    )
    with live_page(live) as page:
        summary = run_stream(stream, out / "traffic.zarr", console, page)
        _show(stream, summary, out, console)


def _show(stream: SyntheticStream, summary: RunSummary, out: Path, console: Console) -> None:
    """Tables, picture and report."""
    from undertow.cli.demo_picture import draw  # here, so that other commands need not wait for matplotlib

    estimates = read_back(summary.store)
    baselines = {"last value": last_value(stream.values), "moving average": moving_average(stream.values)}
    console.print(_error_table(stream, {"Undertow": estimates.mean, **baselines}))
    console.print(_summary_table(stream, estimates, summary))
    picture = out / "traffic.png"
    draw(picture, stream, estimates, baselines)
    from undertow.report import write_report

    page = write_report(summary.store, out / "report.html")
    show_file(console, "Report", page)
    show_file(console, "Picture", picture)
    show_file(console, "Store", summary.store)


def run_stream(stream: SyntheticStream, store: Path, console: Console, page: LivePage | None = None) -> RunSummary:
    """Run the stream through the default model, as `undertow run` would."""
    import undertow as ut
    from undertow.runs.default_model import default_model

    labels = {mode: [f"router-{number:02d}" for number in range(stream.shape[0])] for mode in ("origin", "destination")}
    source = ut.open_stream(labelled(stream), labels=labels)
    keep = "data,mean,std,outliers,outlier_probability"
    learned = (page or LivePage()).watched("traffic", source)
    with SIGNALS.orderly(), RunBar(console, len(stream)) as bar:
        return ut.run(
            source,
            default_model(),
            store=store,
            overwrite=True,
            keep=keep,
            progress=bar.show,
            notify=bar.notify,
            learned=learned,
        )


def labelled(stream: SyntheticStream) -> object:
    """The stream as an array with names and times."""
    import xarray

    times = _FIRST_TIME + _MINUTES * np.arange(len(stream))
    array = xarray.DataArray(stream.values, {"time": times.astype("datetime64[ns]")}, ("time", "origin", "destination"))
    return array.rename("traffic")


def read_back(store: Path) -> Estimates:
    """The estimates in the store."""
    from undertow.runs.store.reader import open_store

    found = open_store(store).dataset
    return Estimates(*(np.asarray(found[field.name].values, np.float64) for field in fields(Estimates)))


def last_value(values: Floats) -> Floats:
    """The last observed value of every entry, this slice included: what a dashboard shows."""
    return np.stack(list(_carried(values, keep=0.0)))


def moving_average(values: Floats, keep: float = 0.9) -> Floats:
    """Exponentially weighted mean of every entry: m ← keep · m + (1 − keep) · x where x was observed."""
    return np.stack(list(_carried(values, keep=keep)))


def _carried(values: Floats, keep: float) -> Iterator[Floats]:
    memory = np.full(values.shape[1:], np.nan)
    for x in values:
        first = np.isnan(memory)
        memory = np.where(np.isnan(x), memory, np.where(first, x, keep * memory + (1 - keep) * x))
        # What was never observed is filled with the mean of what was.
        guess = np.nanmean(memory) if not np.isnan(memory).all() else 0.0
        yield np.where(np.isnan(memory), guess, memory)


def warm_up(slices: int) -> int:
    """How many slices at the beginning are not compared."""
    return min(_WARM_UP, slices // 4)


def _error_table(stream: SyntheticStream, estimates: dict[str, Floats]) -> Table:
    start = warm_up(len(stream))
    table = Table(
        title=f"Mean relative error against the truth, slices {start}–{len(stream) - 1}", title_justify="left"
    )
    table.add_column("method")
    table.add_column("hidden entries", justify="right")
    table.add_column("all entries", justify="right")
    for name, estimate in estimates.items():
        pairs = list(zip(estimate, stream.low_rank, stream.hidden, strict=True))[start:]
        hidden = np.nanmean([metrics.relative_error(x, y, where) for x, y, where in pairs])
        everywhere = np.mean([metrics.relative_error(x, y) for x, y, _ in pairs])
        style = "bold" if name == "Undertow" else None
        table.add_row(name, f"{hidden:.3f}", f"{everywhere:.3f}", style=style)
    return table


def _summary_table(stream: SyntheticStream, estimates: Estimates, summary: RunSummary) -> Table:
    start = warm_up(len(stream))
    flagged = (estimates.outlier_probability > 0.5) & stream.mask
    real = stream.outlier_mask & stream.mask
    judged = ~stream.outlier_mask & stream.hidden
    judged[:start] = False
    covered = metrics.coverage(stream.complete, estimates.mean, estimates.std, where=judged)
    table = Table(title="What Undertow found", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_row("components of its CP model at the end", f"{summary.rank}")
    table.add_row("anomalies found", f"{int((flagged & real).sum())} of {int(real.sum())}")
    table.add_row("anomalies missed", f"{int((~flagged & real).sum())}")
    table.add_row("false alarms", f"{int((flagged & ~real).sum())} in {int((stream.mask & ~real).sum())}")
    table.add_row("hidden entries within ±1.96 std", f"{covered:.1%}")
    table.add_row("time in all, compilation included", f"{summary.seconds:.1f} s")
    return table
