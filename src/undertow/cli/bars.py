"""Progress of an evaluation as two bars: all of it, and the slices of the case under way."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from undertow.cli.terminal import literal
from undertow.lab.reporter import Reporter


class Bars(Reporter):
    """A reporter for `undertow.lab` that draws; sentences are shown once, above the bars."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:38.38}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._runs: TaskID = self._progress.add_task("all", total=None)
        self._slices: TaskID = self._progress.add_task("", total=None, visible=False)
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.update(self._slices, visible=False)
        self._progress.stop()

    def begin(self, total: int) -> None:
        """The number of evaluations ahead."""
        self._progress.reset(self._runs, total=total)

    def start(self, label: str, slices: int) -> None:
        """One of them begins."""
        self._progress.reset(self._slices, total=slices, description=label, visible=True)

    def tick(self) -> None:
        """One more slice of it is done."""
        self._progress.advance(self._slices)

    def done(self) -> None:
        """One more of them is done."""
        self._progress.advance(self._runs)

    def say(self, sentence: str) -> None:
        """Show a sentence, once."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._progress.console.print(f"[yellow]{literal(sentence)}[/]", highlight=False, soft_wrap=True)
