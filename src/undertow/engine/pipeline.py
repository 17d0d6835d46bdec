"""Learning in a thread of its own, so that the next slice can be checked and the last results fetched meanwhile.

On a CPU a compiled step is handed over at once and computed beside the caller anyway. On a GPU it asks the host after
every sweep whether to go on, so the call lasts as long as the step does: there the thread is worth its while, unless
slices are so small that changing threads takes longer than checking them.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import jax

from undertow.engine import selection as panels
from undertow.engine.output import Output
from undertow.engine.selection import Panel
from undertow.inputs.packing import Piece
from undertow.inputs.scaling import Given
from undertow.results import Result

LARGE_SLICE = 200_000
"""Entries from which on a slice is learned in the thread."""


class Ahead:
    """The panel of a stream, or what becomes of it."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._coming: Future[Result] | None = None
        self._demand = Demand()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has learned all there was to learn."""
        return {"_panel": self.panel(), "_coming": None, "_demand": Demand()}

    def panel(self) -> Panel:
        """As it is after the last slice. If learning from that one failed, this says so, once."""
        coming = self._coming
        if coming is not None:
            try:
                coming.result()
            finally:
                if coming.done():  # else the wait was interrupted, and goes on when somebody asks again
                    self._coming = None
        return self._panel

    def learn(self, piece: Piece) -> Result:
        """Learn from a slice; what it holds may be asked for as soon as this returns."""
        if not worth_a_thread(piece.values.size):
            return self._learned(self.panel(), piece)
        given = panels.sent(self._panel, piece)  # while the last one is still being learned
        device = getattr(jax.config, "jax_default_device", None)
        self._coming = _thread().submit(self._learned_on, device, self.panel(), piece, given)
        return Result(self._coming)

    def _learned(self, before: Panel, piece: Piece, given: Given | None = None) -> Result:
        self._panel, result = panels.learn(before, piece, given)
        if not elsewhere():
            return result
        watched = {id(output): replace(output, on_fetch=self._demand.note) for output in result._outputs}
        output, outlier_output = (watched[id(output)] for output in result._outputs)  # which may be the same
        self._demand.send(output, outlier_output)
        return Result(output, outlier_output)

    def _learned_on(self, device: Any, before: Panel, piece: Piece, given: Given | None) -> Result:
        """On the device that the caller has chosen: such choices hold for one thread only."""
        with jax.default_device(device):
            return self._learned(before, piece, given)


class Demand:
    """What is asked of the results of a stream: that of the next one is copied to the host before anybody asks."""

    RECENT = 3
    """Slices for which it is remembered."""

    def __init__(self) -> None:
        self._slices = 0
        self._last: dict[str, int] = {}

    def note(self, name: str) -> None:
        """Somebody has asked for this part of a report."""
        self._last[name] = self._slices

    def send(self, output: Output, outlier_output: Output) -> None:
        """Start copying what was asked for lately; to be called once a slice."""
        self._slices += 1
        for name, last in self._last.copy().items():  # others may be asking meanwhile
            if self._slices - last <= self.RECENT:
                report = (outlier_output if "outlier" in name else output).reports[0]
                getattr(report, name).copy_to_host_async()


def elsewhere() -> bool:
    """Whether the device is not the one that prepares the slices."""
    return jax.default_backend() != "cpu"


def worth_a_thread(entries: int) -> bool:
    """Whether slices of so many entries are."""
    return elsewhere() and entries >= LARGE_SLICE


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all models: the device takes one step at a time anyway."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="undertow")
