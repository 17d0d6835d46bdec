"""Learning in a thread, so that the next slice can be validated and the last results fetched meanwhile.

Worth it where a compiled step keeps its caller waiting (`Platform.pipeline_entries`); elsewhere nothing is threaded.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import jax

from undertow.engine import selection
from undertow.engine.output import Output
from undertow.engine.selection import Selection
from undertow.inputs.sparse import AnySlice
from undertow.inputs.transfer import DeviceSlice
from undertow.model import platform
from undertow.results import Result


class Demand:
    """What is asked of the results of a stream: of the next one it is copied to the host before it is asked for."""

    RECENT = 3
    """Slices for which it is remembered."""

    def __init__(self) -> None:
        self._slices = 0
        self._last: dict[str, int] = {}

    def note(self, name: str) -> None:
        """This part of a report has been asked for."""
        self._last[name] = self._slices

    def send(self, output: Output, outlier_output: Output) -> None:
        """Start copying what was asked for lately; to be called once a slice."""
        self._slices += 1
        for name, last in self._last.copy().items():  # others may be asking meanwhile
            if self._slices - last <= self.RECENT:
                report = (outlier_output if "outlier" in name else output).reports[0]
                getattr(report, name).copy_to_host_async()


class Pipeline:
    """The selection of a stream, or what it will be once the last slice is learned."""

    def __init__(self, start: Selection) -> None:
        self._selection = start
        self._pending: Future[Result] | None = None
        self._demand = Demand()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has learned all there was to learn."""
        return {"_selection": self.selection(), "_pending": None, "_demand": Demand()}

    def selection(self) -> Selection:
        """As it is after the last slice. If learning from that one failed, this raises why, once."""
        pending = self._pending
        if pending is not None:
            try:
                pending.result()
            finally:
                if pending.done():  # else the wait was interrupted, and goes on when asked again
                    self._pending = None
        return self._selection

    def update(self, validated: AnySlice) -> Result:
        """Learn from a slice. The result may be asked for as soon as this returns; it then waits for the step."""
        smallest = platform.current().pipeline_entries
        if smallest is None or validated.values.size < smallest:
            return self._step(self.selection(), validated)
        given = selection.transfer(self._selection, validated)  # while the last one is still being learned
        device = getattr(jax.config, "jax_default_device", None)
        self._pending = _thread().submit(self._step_on, device, self.selection(), validated, given)
        return Result(self._pending)

    def _step_on(self, device: Any, before: Selection, validated: AnySlice, given: DeviceSlice | None) -> Result:
        """On the device that the caller has chosen: such choices hold for one thread only."""
        with jax.default_device(device):
            return self._step(before, validated, given)

    def _step(self, before: Selection, validated: AnySlice, given: DeviceSlice | None = None) -> Result:
        self._selection, result = selection.step(before, validated, given)
        if not platform.current().separate_memory:
            return result
        watched = {id(output): replace(output, on_fetch=self._demand.note) for output in result._outputs}
        output, outlier_output = (watched[id(output)] for output in result._outputs)  # which may be the same
        self._demand.send(output, outlier_output)
        return Result(output, outlier_output)


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all models: the device takes one step at a time anyway."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="undertow")
