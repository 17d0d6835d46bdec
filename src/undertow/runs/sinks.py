"""Where results go: the store, the alerts, and the checkpoint that says how far both have got."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import Change, Incident, Incidents
from undertow.incidents.delivery import Courier
from undertow.incidents.growing import grown
from undertow.incidents.naming import Names
from undertow.runs.checkpoints import CheckpointFolder, RunCheckpoint
from undertow.runs.options import RunOptions
from undertow.runs.publishing import ResultSink
from undertow.runs.store.alerts import AlertSink, open_sink, rows_of
from undertow.runs.store.events import Chronicle, in_words
from undertow.runs.store.feedback import read_feedback
from undertow.runs.store.folder import PRIVATE
from undertow.runs.store.growth import Growth
from undertow.runs.store.incidents import IncidentFile
from undertow.runs.store.layout import EVENTS, WEIGHTS, Layout
from undertow.runs.store.writer import StoreWriter
from undertow.sources.base import Item

_MOST_NOTICED = 5  # of the events that a summary repeats; the store holds all


class Sinks:
    """Called by the writing thread alone, in the order of the slices.

    Attributes:
        safe: slices that a later run need not do again.
        alerts: alerts added by this run.
        flags: status codes of this run, each with the number of slices that had it.
        notices: sentences that a user should see, to be taken from the left.
        last: the values per slice of the newest slice; empty before the first.
        noticed: what was wrong beyond single entries, the newest events of this run.
        incidents: those of this run by their number, as they are now.
    """

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        options: RunOptions,
        courier: Courier | None = None,
        published: ResultSink | None = None,
        growth: Growth | None = None,
    ) -> None:
        self._layout = layout = layout if growth is None else layout.grown(growth)
        self._threshold = options.threshold
        self._store = StoreWriter(folder, layout, growth)
        self._alerts: AlertSink | None = None
        if options.alerts is not None:
            self._alerts = open_sink(options.alerts, folder, layout, safe=options.spreadsheet_safe)
        self._checkpoints = CheckpointFolder(folder / PRIVATE)
        self._attributes: dict[str, Any] = {}
        self.notices = self._store.notices
        self.safe = 0
        self.alerts = 0
        self.flags: Counter[str] = Counter()
        self.last: dict[str, Any] = {}
        self.noticed = Chronicle(_MOST_NOTICED)
        self.incidents: dict[int, Incident] = {}
        self._watch: Incidents | None = None
        self._incident_file: IncidentFile | None = None
        if options.false_alarms is not None:
            self._watch = Incidents(
                layout.shape, layout.labels_now, options.false_alarms, options.slice_seconds, layout.dims
            )
            self._incident_file = IncidentFile(folder)
        self._courier, self._published = courier, published
        self._folder, self._heard = folder, 0

    @property
    def open_incidents(self) -> int:
        """How many last."""
        return 0 if self._watch is None else len(self._watch.open)

    def prepare(
        self, slices: int, marks: Mapping[str, int], attributes: Mapping[str, Any], incidents: bytes = b""
    ) -> None:
        """Be ready to add the slice with index ``slices``."""
        self._attributes = dict(attributes)
        self._store.prepare(slices, self._attributes)
        if self._alerts is not None:
            self._alerts.go_back(slices, marks)
        if self._watch is not None and self._incident_file is not None:
            self._incident_file.cut(marks)
            self._incident_file.flush()
            if incidents:
                self._watch.from_bytes(incidents)
                self._listen(marks.get("feedback", 0))
        self.safe = slices

    def add(self, item: Item, result: Any) -> None:
        """Write one more slice and the model's result for it."""
        index = self._store.length
        if item.values.shape != self._layout.shape:
            self._grow(index, item.values.shape)
        observed = ~np.isnan(item.values)
        flagged = observed & (result.outlier_probability >= self._threshold)
        self.last = {
            "rank": int(result.rank),
            "noise_std": float(result.noise_std),
            "evidence": float(result.elbo),
            "status": " ".join(result.status.codes) or "ok",
            "observed": float(observed.mean()),
            "outlier_rate": int(np.count_nonzero(flagged)) / max(int(np.count_nonzero(observed)), 1),
            "fit_error": _relative_error(item.values, result.mean, observed & ~flagged),
        }
        if self._layout.predictors:
            weights = result.weights
            self.last |= {
                WEIGHTS: np.array([weights.get(name, np.nan) for name in self._layout.predictors]),
                EVENTS: in_words(result.events, self._layout),
            }
            self.noticed.add(index, self.last[EVENTS])
        arrays = {name: item.values if name == "data" else getattr(result, name) for name in self._layout.keep}
        self._store.append(item.time, self.last, arrays)
        if self._alerts is not None:
            numbers = (item.values, result.mean, result.std, result.outlier_probability)
            rows = rows_of(self._layout, index, item.time, flagged, numbers)
            self._alerts.add(index, rows)
            self.alerts += len(rows)
        self._look_for_incidents(item, result)
        if self._published is not None:
            self._published.add(index, item, result, self.last, flagged)
        self.flags.update(result.status.codes)
        in_force = getattr(result, "settings", None)
        if in_force:  # with what depends on the stream, such as the largest rank
            self._attributes["settings_in_force"] = json.dumps(dict(in_force), default=_plain, sort_keys=True)

    def _grow(self, index: int, shape: tuple[int, ...]) -> None:
        """For labels that have come."""
        modes = zip(self._layout.dims, self._layout.shape, shape, strict=True)
        self.notices += [f"{dim} has {size} slots from slice {index} on" for dim, was, size in modes if size > was]
        self._attributes |= self._store.grow(shape)
        self._layout = self._store.layout
        if self._watch is not None:
            self._watch = grown(self._watch, shape, self._layout.labels_now)

    def forget(self, mode: int, slots: NDArray[np.int64]) -> None:
        """Nobody waits for these labels to be heard again."""
        if self._watch is not None:
            self._watch.forget(mode, slots)

    def checkpoint(self, checkpoint: RunCheckpoint) -> None:
        """Make everything so far durable, then replace the checkpoint atomically."""
        if self._published is not None:
            self._published.flush()
        if self._alerts is not None:
            self._alerts.flush()
        self._store.flush(self._attributes)
        marks = {} if self._alerts is None else self._alerts.marks()
        if self._watch is not None and self._incident_file is not None:
            self._incident_file.flush()
            marks |= self._incident_file.marks() | {"feedback": self._heard}
            checkpoint = replace(checkpoint, incidents=self._watch.to_bytes())
        self._checkpoints.write(replace(checkpoint, marks=marks, attributes=self._attributes))
        self.safe = checkpoint.slices

    def close(self) -> None:
        """Close open files."""
        for file in (self._alerts, self._incident_file):
            if file is not None:
                file.close()
        if self._published is not None:
            self._published.close()

    def _look_for_incidents(self, item: Item, result: Any) -> None:
        if self._watch is None or self._incident_file is None:
            return
        if self._layout.to_come:
            layout = self._layout
            self._watch.names = Names.of(layout.shape, layout.labels_now, layout.dims)
        self._tell(self._watch.update(result, item.time, item.values))

    def _listen(self, first: int) -> None:
        """What users said about incidents, from a number on: before the next slice, as often as that is begun."""
        assert self._watch is not None
        said = read_feedback(self._folder)
        for id, false_alarm in said[first:]:
            try:
                self._tell(self._watch.feedback(id, false_alarm))
            except KeyError:
                self.notices.append(f"incident {id} is too long ago: the answer about it changes nothing")
        self._heard = len(said)

    def _tell(self, changes: Sequence[Change]) -> None:
        assert self._incident_file is not None
        self._incident_file.add(changes)
        for change in changes:
            self.incidents[change.incident.id] = change.incident
            if self._courier is not None and change.what != "updated":
                self._courier.put(change)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as numbers, anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _relative_error(values: NDArray[Any], mean: NDArray[Any], where: NDArray[np.bool_]) -> float:
    """‖x − mean‖ / ‖x‖ over the entries asked for; NaN where there is nothing to compare."""
    x = np.asarray(values[where], np.float64)
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0:
        return float("nan")
    with np.errstate(over="ignore"):
        difference = (x - np.asarray(mean, np.float64)[where]) / largest  # scaled: squares rarely overflow then
        # Sums rather than norms: those go through BLAS, whose threads would spin against the model's.
        return float(np.sqrt(np.square(difference).sum() / np.square(x / largest).sum()))
