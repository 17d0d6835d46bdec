"""The progress of a run as one line that moves; a warning where it will take hours."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from undertow.cli.terminal import literal
from undertow.cli.wording import as_typed

if TYPE_CHECKING:
    from undertow.runs import Progress as RunProgress

_MEASURED = 12  # slices of this run after which its speed is known
_SLOW = 60.0  # seconds after which four have to do
_LONG = 3600.0  # seconds from which on a warning is due
_REDRAW = 0.1  # seconds: a bar that is redrawn for every slice would slow the run
_LINE = 10.0  # seconds between lines where there is no terminal to draw a bar on


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
        self._warned = False
        self._moments: deque[float] = deque(maxlen=_MEASURED + 1)
        self._pause = _REDRAW if console.is_terminal else _LINE
        self._drawn = 0.0 if console.is_terminal else time.monotonic()
        self._done, self._length = 0, length
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._bar.start()
        if self._bar.disable and not self._quiet:
            threading.Thread(target=self._wait, name="undertow progress", daemon=True).start()
        return self

    def _wait(self) -> None:
        """A line where no slice gives cause for one: while the first is compiled, or one takes long."""
        while not self._over.wait(_LINE / 2):
            if time.monotonic() - self._drawn > 1.4 * _LINE:
                self._drawn = time.monotonic()
                what = "the next takes longer" if self._done else "compiling for the first"
                self._bar.console.print(f"{self._count()}, {what}", highlight=False, soft_wrap=True)

    def _count(self) -> str:
        return f"{self._done} slices" if self._length is None else f"{self._done} of {self._length} slices"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if kind is not None and not self._drawn:
            self._bar.live.transient = True  # refused before anything was done: nothing to show for it
        self._bar.stop()

    def show(self, now: RunProgress) -> None:
        """After a slice."""
        self._warn_once(now)
        self._done, self._length = now.slices, now.length
        moment = time.monotonic()
        if self._quiet or (moment - self._drawn < self._pause and (now.slices != now.length or self._bar.disable)):
            return
        self._drawn = moment
        figures = (
            f"{now.slices_per_second:.3g} slices/s, rank {now.rank}, noise {now.noise_std:.3g}, "
            f"outliers {now.outlier_rate:.1%}"
        )
        figures += f", {literal(now.events)}" if now.events else ""
        if self._bar.disable:
            left = seconds_left(now)
            rest = "" if left is None else f", {duration(left)} left"
            self._bar.console.print(f"{self._count()}{rest}  {figures}", highlight=False, soft_wrap=True)
        self._bar.update(self._task, completed=now.slices, total=now.length, description="", figures=figures)

    def notify(self, sentence: str) -> None:
        """Something the user should see."""
        if not self._quiet:
            text = literal(as_typed(sentence))
            self._bar.console.print(f"[yellow]{text}[/]", highlight=False, soft_wrap=True)

    def _warn_once(self, now: RunProgress) -> None:
        """As soon as the speed is known; the median of the last slices, since some of the first ones compile."""
        self._moments.append(time.monotonic())
        waited = self._moments[-1] - self._moments[0]
        enough = len(self._moments) > _MEASURED or (len(self._moments) > 3 and waited > _SLOW)
        if self._warned or not enough or now.length is None:
            return
        self._warned = True
        each = float(np.median(np.diff(list(self._moments))))
        left = each * (now.length - now.slices)
        if left > _LONG:
            self.notify(
                f"this will take about {duration(left)} ({duration(each)} per slice): --limit or --select for a part, "
                "--resize 0.5 for smaller slices, or --model cp --preset fast would be quicker; it can be stopped "
                "at any time and goes on with --resume"
            )


def seconds_left(now: RunProgress) -> float | None:
    """Until the end of the stream at this speed; None where either is not known."""
    if now.length is None or not now.slices_per_second > 0:
        return None
    return (now.length - now.slices) / now.slices_per_second


def duration(seconds: float) -> str:
    """A time as people say it.

    Examples:
        >>> duration(75), duration(4000), duration(200_000)
        ('1 min 15 s', '1 h 7 min', '2 d 8 h')
    """
    for large, small, size, part in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if seconds >= size:
            count = round(seconds / part) * part
            return f"{count // size} {large} {count % size // part} {small}"
    return f"{seconds:.2g} s"
