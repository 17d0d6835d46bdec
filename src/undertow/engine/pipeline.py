"""Learning in a thread, so that the next slice can be validated and the last results fetched meanwhile.

Worth it where a compiled step keeps its caller waiting (`Platform.pipeline_entries`); elsewhere nothing is threaded.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import jax

from undertow.engine import learner
from undertow.engine.learner import Learner
from undertow.engine.output import Output
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

    def send(self, output: Output) -> None:
        """Start copying what was asked for lately; to be called once a slice."""
        self._slices += 1
        for name, last in self._last.copy().items():  # others may be asking meanwhile
            if self._slices - last <= self.RECENT:
                getattr(output.reports[0], name).copy_to_host_async()


class Pipeline:
    """The model of a stream, or what it will be once the last slice is learned."""

    def __init__(self, start: Learner) -> None:
        self._learner = start
        self._pending: Future[Result] | None = None
        self._demand = Demand()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has learned all there was to learn."""
        return {"_learner": self.learner(), "_pending": None, "_demand": Demand()}

    def learner(self) -> Learner:
        """As it is after the last slice. If learning from that one failed, this raises why, once."""
        pending = self._pending
        if pending is not None:
            try:
                pending.result()
            finally:
                if pending.done():  # else the wait was interrupted, and goes on when asked again
                    self._pending = None
        return self._learner

    def update(self, validated: AnySlice) -> Result:
        """Learn from a slice. The result may be asked for as soon as this returns; it then waits for the step."""
        smallest = platform.current().pipeline_entries
        if smallest is None or validated.values.size < smallest:
            return self._step(self.learner(), validated)
        given = learner.transfer(self._learner, validated)  # while the last one is still being learned
        device = getattr(jax.config, "jax_default_device", None)
        self._pending = _thread().submit(self._step_on, device, self.learner(), validated, given)
        return Result(self._pending)

    def _step_on(self, device: Any, before: Learner, validated: AnySlice, given: DeviceSlice | None) -> Result:
        """On the device that the caller has chosen: such choices hold for one thread only."""
        with jax.default_device(device):
            return self._step(before, validated, given)

    def _step(self, before: Learner, validated: AnySlice, given: DeviceSlice | None = None) -> Result:
        self._learner, result = learner.step(before, validated, given)
        if not platform.current().separate_memory:
            return result
        watched = replace(result._output, on_fetch=self._demand.note)
        self._demand.send(watched)
        return Result(watched)


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all models: the device takes one step at a time anyway."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="undertow")
