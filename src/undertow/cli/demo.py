"""``undertow demo``: a day of traffic matrices with gaps and anomalies, and what Undertow makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from undertow import metrics
from undertow.datasets.synthetic import SyntheticStream, traffic

Floats = NDArray[np.float64]
_BURN_IN = 20  # slices that every method may use to find its feet before it is judged
_QUICK_SLICES = 60


@dataclass(frozen=True)
class DemoRun:
    """What Undertow said about every slice of a stream, stacked over time, and how long it took."""

    low_rank: Floats
    std: Floats
    outlier_probability: Floats
    rank: NDArray[np.int64]
    noise_std: Floats
    seconds: Floats
    troubles: list[str]


def demo(
    slices: Annotated[int, typer.Option(min=2, help="How many traffic matrices; 288 are a day.")] = 288,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("undertow-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another network.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help=f"At most {_QUICK_SLICES} slices.")] = False,
) -> None:
    """Clean up a generated day of network traffic: fill the gaps, find the anomalies, say how sure it is."""
    from undertow.cli.demo_picture import draw  # here, so that other commands need not wait for matplotlib

    console = Console()
    out.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad folder costs no time
    stream = traffic(slices=min(slices, _QUICK_SLICES) if quick else slices, seed=seed)
    nodes = stream.shape[0]
    console.print(
        f"[bold]{len(stream)} traffic matrices[/] of {nodes}×{nodes} routers, {stream.hidden.mean():.0%} of the "
        f"entries missing, {int((stream.outlier_mask & stream.mask).sum())} anomalous measurements among the rest."
    )
    answers = follow(stream, console)
    rivals = {"last value": last_value(stream.values), "moving average": moving_average(stream.values)}
    console.print(_error_table(stream, {"Undertow": answers.low_rank, **rivals}))
    console.print(_summary_table(stream, answers))
    for trouble in answers.troubles[:3]:
        console.print(f"[yellow]{trouble}[/]")
    path = out / "traffic.png"
    draw(path, stream, answers, rivals)
    console.print(f"Picture: [bold]{path}[/]")


def follow(stream: SyntheticStream, console: Console) -> DemoRun:
    """Give the stream to Undertow slice by slice, with nothing but its defaults, under a progress bar."""
    import undertow as ut

    model = ut.RobustCP()
    stack: dict[str, list[NDArray[np.float64] | float]] = {"low_rank": [], "std": [], "probability": []}
    ranks: list[int] = []
    noise: list[float] = []
    seconds: list[float] = []
    troubles: list[str] = []
    found = 0
    with _progress(console) as bar:
        task = bar.add_task("compiling", total=len(stream), speed=0.0, rank=0, noise=0.0, found=0)
        for t, values in enumerate(stream.values):
            begin = time.perf_counter()
            result = model.update(values)
            seconds.append(time.perf_counter() - begin)
            stack["low_rank"].append(result.low_rank)
            stack["std"].append(result.std)
            stack["probability"].append(result.outlier_probability)
            ranks.append(int(result.rank))
            noise.append(float(np.mean(result.noise_std)))
            found += int(np.count_nonzero(np.asarray(result.outlier_probability) > 0.5))
            if not result.status.ok:
                troubles.append(f"slice {t}: {result.status}")
            speed = t / sum(seconds[1:]) if t else 0.0
            bar.update(
                task, advance=1, description="following", speed=speed, rank=ranks[-1], noise=noise[-1], found=found
            )
    return DemoRun(
        low_rank=np.asarray(stack["low_rank"], dtype=np.float64),
        std=np.asarray(stack["std"], dtype=np.float64),
        outlier_probability=np.asarray(stack["probability"], dtype=np.float64),
        rank=np.asarray(ranks),
        noise_std=np.asarray(noise),
        seconds=np.asarray(seconds),
        troubles=troubles,
    )


def last_value(values: Floats) -> Floats:
    """The last value seen of every entry, this slice included: what a dashboard shows."""
    return np.stack(list(_carried(values, keep=0.0)))


def moving_average(values: Floats, keep: float = 0.9) -> Floats:
    """Exponentially weighted mean of every entry: m ← keep · m + (1 − keep) · x where x was observed."""
    return np.stack(list(_carried(values, keep=keep)))


def _carried(values: Floats, keep: float) -> Iterator[Floats]:
    memory = np.full(values.shape[1:], np.nan)
    for x in values:
        first = np.isnan(memory)
        memory = np.where(np.isnan(x), memory, np.where(first, x, keep * memory + (1 - keep) * x))
        # What has never been seen is guessed as the mean of what has.
        guess = np.nanmean(memory) if not np.isnan(memory).all() else 0.0
        yield np.where(np.isnan(memory), guess, memory)


def burn_in(slices: int) -> int:
    """How many slices at the beginning are not judged."""
    return min(_BURN_IN, slices // 4)


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]:.0f} slices/s"),
        TextColumn("rank {task.fields[rank]}"),
        TextColumn("noise {task.fields[noise]:.3g}"),
        TextColumn("{task.fields[found]} outliers"),
        TimeRemainingColumn(),
        console=console,
    )


def _error_table(stream: SyntheticStream, estimates: dict[str, Floats]) -> Table:
    start = burn_in(len(stream))
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


def _summary_table(stream: SyntheticStream, answers: DemoRun) -> Table:
    start = burn_in(len(stream))
    flagged = (answers.outlier_probability > 0.5) & stream.mask
    real = stream.outlier_mask & stream.mask
    judged = ~stream.outlier_mask & stream.hidden
    judged[:start] = False
    covered = metrics.coverage(stream.complete, answers.low_rank, answers.std, where=judged)
    later = answers.seconds[1:]
    table = Table(title="What Undertow found", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_row("rank at the end", f"{answers.rank[-1]}")
    table.add_row("anomalies found", f"{int((flagged & real).sum())} of {int(real.sum())}")
    table.add_row("anomalies missed", f"{int((~flagged & real).sum())}")
    table.add_row("false alarms", f"{int((flagged & ~real).sum())} in {int((stream.mask & ~real).sum())}")
    table.add_row("hidden entries within ±1.96 std", f"{covered:.1%}")
    table.add_row("time per slice (median)", f"{1000 * float(np.median(later)):.1f} ms")
    table.add_row("first slice, compilation included", f"{answers.seconds[0]:.1f} s")
    return table
