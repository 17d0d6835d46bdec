"""The progress of a run as one line that moves."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from undertow.cli.terminal import printable

if TYPE_CHECKING:
    from undertow.runs import Progress as RunProgress

_REDRAW = 0.1  # seconds: a bar that is redrawn for every slice would slow the run
_LINE = 30.0  # seconds between lines where there is no terminal to draw a bar on


class RunBar:
    """Shows what `undertow.run` reports; notices appear above the bar."""

    def __init__(self, console: Console, length: int | None, quiet: bool = False) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("compiling", total=length, figures="")
        self._quiet = quiet
        self._pause = _REDRAW if console.is_terminal else _LINE
        self._drawn = 0.0 if console.is_terminal else time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self._drawn:
            self._bar.live.transient = True  # refused before anything was done: nothing to show for it
        self._bar.stop()

    def show(self, now: RunProgress) -> None:
        """After a slice."""
        moment = time.monotonic()
        if self._quiet or (moment - self._drawn < self._pause and (now.slices != now.length or self._bar.disable)):
            return
        self._drawn = moment
        figures = (
            f"{now.slices_per_second:.3g} slices/s, rank {now.rank}, noise {now.noise_std:.3g}, "
            f"outliers {now.outlier_rate:.1%}"
        )
        figures += f", {escape(printable(now.events))}" if now.events else ""
        if self._bar.disable:
            self._bar.console.print(f"{now.slices} slices  {figures}", highlight=False, soft_wrap=True)
        self._bar.update(self._task, completed=now.slices, total=now.length, description="", figures=figures)

    def notify(self, sentence: str) -> None:
        """Something the user should see."""
        if not self._quiet:
            self._bar.console.print(f"[yellow]{escape(printable(sentence))}[/]", highlight=False, soft_wrap=True)
