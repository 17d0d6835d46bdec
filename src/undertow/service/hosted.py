"""One stream in memory: its model and its incidents. Only the inference thread touches it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from undertow.incidents import Change, Incident, Incidents
from undertow.incidents.growing import grown
from undertow.runs.default_model import extend, update
from undertow.runs.runner import Model
from undertow.serialization.container import from_bytes
from undertow.service import frames
from undertow.service.spec import Spec
from undertow.service.store.base import Checkpoint, Feedback, Kept, KeptIncident, Store, Write
from undertow.service.times import moment, sent

_READ = 64  # slices of the log that are read together
FEWEST = 32
"""Trackers from which on a step of all together is quicker: of 12×12 one alone takes 8 to 11 ms of processor time, a
batch 170 ms and 4 ms for each."""


def _one_by_one(models: Sequence[Any], slices: Sequence[NDArray[Any]], times: Sequence[Any]) -> list[Any]:
    """The results, or why a slice was refused."""
    found: list[Any] = []
    for model, values, time in zip(models, slices, times, strict=True):
        try:
            found.append(update(model, values, time))
        except (ValueError, TypeError, FloatingPointError) as error:
            found.append(error)
    return found


@dataclass(frozen=True)
class Models:
    """How models are made and read back, and stepped; tests give their own.

    Attributes:
        new: Makes one.
        load: Reads one back.
        update: One slice of each, with its time if a client named one.
        fewest: From which number of models on updating them together is quicker; fewer are answered one by one.
        long: Whether the next slice of a model may take many times as long as usual: it must not hold up all others.
    """

    new: Callable[[], Model]
    load: Callable[[bytes], Model]
    update: Callable[[Sequence[Any], Sequence[NDArray[Any]], Sequence[Any]], list[Any]] = _one_by_one
    fewest: int = 2
    long: Callable[[Any], bool] = lambda _: False


def trackers() -> Models:
    """`undertow.Tracker` for every stream."""
    from undertow import estimator  # not before it is needed: it brings jax
    from undertow.runs.default_model import default_model
    from undertow.tracker.estimator import reviewed_next, update_together

    return Models(default_model, estimator.from_bytes, update_together, FEWEST, reviewed_next)


@dataclass(frozen=True)
class Outcome:
    """What came of a slice.

    Attributes:
        sequence: Its number.
        time: Its time.
        numbers: The curves.
        body: Its arrays, as the page draws them.
        arrays: Its arrays in full precision.
        changes: Incidents that opened, changed or closed.
        error: Why the model refused it, in which case nothing was learned.
    """

    sequence: int
    time: str
    numbers: dict[str, Any]
    body: bytes
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    error: str | None = None


class Hosted:
    """A stream that goes on.

    Args:
        key: Of the stream.
        spec: Shape and labels.
        model: Learns.
        incidents: Watches.
        next: Sequence number of the slice that it waits for.
        feedback: Number of the feedback that it waits for.
    """

    def __init__(self, key: int, spec: Spec, model: Model, incidents: Incidents, next: int, feedback: int) -> None:
        self.key, self.spec, self.model, self.incidents = key, spec, model, incidents
        self.next, self.feedback = next, feedback
        self.saved = next
        self.work = self.saving = 0.0
        """Seconds that went into what is not saved yet, and that saving took."""
        self.size = 64 * spec.entries
        """Bytes of the model, about; exact after the first checkpoint."""

    @classmethod
    def restored(cls, store: Store, key: int, spec: Spec, models: Models) -> Hosted:
        """As the newest checkpoint has it; what is in the log after it is still to come."""
        found = store.checkpoint(key)
        if found is None:
            return cls(key, spec, models.new(), spec.cut(spec.first).incidents(), 0, 0)
        kept = from_bytes(found.incidents, "of incidents")
        incidents = spec.cut(tuple(kept[0]["shape"])).incidents()  # slices that came later may have more rows
        incidents.restore(*kept)
        model = models.load(found.model) if found.model else models.new()
        hosted = cls(key, spec, model, incidents, found.next, found.feedback)
        hosted.size = max(hosted.size, len(found.model))
        return hosted

    def learned(self, time: str, values: NDArray[Any], result: Any) -> Outcome:
        """What came of the next slice, by what its model said, or by why it refused it."""
        sequence, self.next = self.next, self.next + 1
        try:
            if isinstance(result, Exception):
                raise result
            arrays = {name: np.asarray(getattr(result, name)) for name in frames.PLANES[1:]}
            changes = tuple(self.incidents.update(result, moment(time), values))
            numbers = {**frames.numbers_of(values, result), "incidents": len(self.incidents.open)}
        except (ValueError, TypeError, FloatingPointError) as error:
            return Outcome(sequence, time, {}, b"", error=" ".join(str(error).split()) or type(error).__name__)
        return Outcome(sequence, time, numbers, frames.packed(values, result), {"data": values, **arrays}, changes)

    def rename(self, spec: Spec) -> None:
        """Go on with labels that have come."""
        self.spec = spec
        self.extend(spec.shape)
        self.incidents.names = spec.names()

    def extend(self, shape: tuple[int, ...]) -> None:
        """Go on with rows for labels that have come."""
        if shape == self.incidents.shape:
            return
        if self.next:
            extend(self.model, shape)
        self.incidents = grown(self.incidents, shape, self.spec.cut(shape).names().labels)

    def forget(self, rows: Sequence[Sequence[int]], spec: Spec) -> None:
        """Leave nothing in the model of rows whose labels are retired."""
        self.rename(spec)
        for mode, some in enumerate(rows):
            self.incidents.forget(mode, some)
        if self.next and hasattr(self.model, "forget"):
            self.model.forget(rows)

    def listen(self, said: Feedback) -> tuple[Change, ...]:
        """Take what a user said about an incident; one that is not known any more is left alone."""
        self.feedback = said.number + 1
        try:
            return tuple(self.incidents.feedback(said.incident, said.false_alarm))
        except (KeyError, ValueError):
            return ()

    def kept(self, outcome: Outcome) -> list[Write]:
        """What the store should keep of an outcome."""
        writes: list[Write] = []
        if outcome.error is None:
            text = orjson.dumps(outcome.numbers).decode()
            writes.append(Kept(self.key, outcome.sequence, outcome.time, text, outcome.body))
        return writes + self.kept_changes(outcome.changes)

    def kept_changes(self, changes: tuple[Change, ...]) -> list[Write]:
        """Incidents as they are now."""
        return [KeptIncident(self.key, one.incident.id, as_text(one.incident)) for one in changes]

    def checkpoint(self, history: int) -> Checkpoint:
        """Everything that is needed to go on from here."""
        model = self.model.to_bytes() if self.next else b""
        self.saved, self.size = self.next, max(self.size, len(model))
        watch = self.incidents.to_bytes()
        return Checkpoint(self.key, self.next, self.feedback, model, watch, max(0, self.next - history))

    def behind(self, store: Store) -> list[tuple[int, str, NDArray[Any]]]:
        """Slices of the log that it has not seen, some of them."""
        return [(one.sequence, one.time, read_array(one.body)) for one in store.logged(self.key, self.next, _READ)]


def stepped(models: Models, given: Sequence[tuple[Hosted, str, NDArray[Any]]]) -> list[Outcome]:
    """The next slice of each of these streams, with its time."""
    for one, _, values in given:
        one.extend(values.shape)
    times = [sent(time) for _, time, _ in given]
    results = models.update([one.model for one, _, _ in given], [values for _, _, values in given], times)
    return [one.learned(time, values, result) for (one, time, values), result in zip(given, results, strict=True)]


def as_text(incident: Incident) -> str:
    """JSON."""
    return json.dumps(incident.to_json())


def array_bytes(values: NDArray[Any]) -> bytes:
    """A slice as a NumPy file."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def read_array(body: bytes) -> NDArray[Any]:
    """What `array_bytes` was given."""
    values: NDArray[Any] = np.load(io.BytesIO(body), allow_pickle=False)
    return values
