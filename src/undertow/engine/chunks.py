"""Many CP models of one shape, learned together: the members of `undertow.Fleet(..., model="cp")`.

Members live in the rows of chunks of equal size, each one batch on the device (`undertow.engine.batching`). When more
join than there are rows, the rows of those who left are filled first; the only chunk is doubled until it has the usual
size, and there are more chunks from then on: so nearly nothing is compiled anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.engine import batching
from undertow.engine.history import COUNTS, ODD_SLICES, Counts, History, judge_members
from undertow.engine.learner import Learner
from undertow.engine.memory import check_fleet_memory
from undertow.engine.output import CrossPrediction, Output, gathered
from undertow.engine.slots import slots
from undertow.engine.state import State, negative, precision
from undertow.inputs.dense import Slice
from undertow.inputs.scaling import Scaling, first_units
from undertow.inputs.split import half_of_shape
from undertow.inputs.transfer import DeviceSlice
from undertow.model import platform
from undertow.model.report import Report
from undertow.model.types import Core


@dataclass(frozen=True, eq=False)
class _Slices:
    """The slices of one update by row of the chunks, zeros in rows without a member."""

    values: NDArray[Any]
    mask: NDArray[np.bool_]
    present: NDArray[np.bool_]
    starting: NDArray[np.bool_]
    """Which streams get their first data that are not 0."""
    frozen: NDArray[np.bool_]
    """Which streams repeat themselves, and learn nothing."""
    revised: NDArray[np.bool_]
    """Which streams start anew."""
    halves: NDArray[np.bool_] | None
    """Which half of its slice each entry belongs to, where a cross-prediction is needed."""


class Chunks:
    """CP models by row; `rows` says which row each member has, in the order of the members.

    Args:
        config: Settings of all of them.
        shape: Of a slice.
        expected: Members there will be, as far as is known.
    """

    def __init__(self, config: Config, shape: tuple[int, ...], expected: int) -> None:
        self.config, self._shape = config, shape
        self._settings, self._slots = config.settings(), slots(config, shape)
        self._chunk_size = min(1 << max(expected - 1, 0).bit_length(), platform.current().chunk_members)
        self.chunks: list[Core] = []
        self._units = np.zeros(0)  # by row, as are the steps, the counts and the last slices
        self.steps = np.zeros(0, np.int64)
        self._counts = Counts(**{name: np.zeros(0, kind) for name, kind in COUNTS.items()})
        self._last = Slice(np.zeros((0, *shape)), np.zeros((0, *shape), np.bool_))
        self.rows = np.zeros(0, np.intp)

    def join(self, ids: NDArray[np.int64]) -> None:
        """Add models that have seen nothing, where `make_room` made room for them."""
        free = np.setdiff1d(np.arange(len(self._units)), self.rows)[: len(ids)]
        for number in np.unique(free[self.steps[free] > 0] // self._chunk_size):
            which = np.zeros(self._chunk_size, np.bool_)
            which[free[free // self._chunk_size == number] % self._chunk_size] = True
            with precision(self.config):
                self.chunks[number] = batching.restart(self.chunks[number], which, self._settings, with_window=True)
        for by_row in (self._units, self.steps, self._last.mask, *(getattr(self._counts, name) for name in COUNTS)):
            by_row[free] = 0
        self.rows = np.concatenate([self.rows, free])

    def leave(self, positions: NDArray[np.intp]) -> None:
        """Remove models; their rows are given to those who join."""
        self.rows = np.delete(self.rows, positions)

    def update(self, validated: Slice, here: NDArray[np.bool_]) -> Output:
        """Learn from the next slices, in the order of the members; `here` says who has one."""
        units, steps = self._units[self.rows], self.steps[self.rows]
        counts = Counts(**{name: getattr(self._counts, name)[self.rows] for name in COUNTS})
        last = Slice(self._last.values[self.rows], self._last.mask[self.rows])
        verdict = judge_members(counts, last, validated, here, units, steps, self.config.window)
        learning = here & ~verdict.frozen
        units[verdict.revised] = 0
        without_unit = learning & (units == 0)
        if without_unit.any():
            units[without_unit] = first_units(Slice(validated.values[without_unit], validated.mask[without_unit]))
        scaling = Scaling.of(self.config, units.reshape(-1, *([1] * len(self._shape))))
        revised = self._by_row(verdict.revised)
        predicting = (self._units > 0) & (self.steps > 0) & ~revised & (not self.config.robust)
        slices = _Slices(
            self._by_row(scaling.scaled(validated.values)),
            self._by_row(validated.mask),
            self._by_row(learning),
            self._by_row(without_unit & (units > 0)),
            self._by_row(verdict.frozen),
            revised,
            self._halves(predicting),
        )
        chunks, reports, predictions = zip(
            *batching.in_threads(partial(self._step_chunk, slices), len(self.chunks)), strict=True
        )
        output = Output(
            config=self.config,
            scaling=scaling,
            reports=reports,
            given=DeviceSlice(validated),
            cross_predicted=None if slices.halves is None else self._joined(predictions),
            rows=self.rows,
            could_predict=predicting[self.rows],
            noticed=verdict.flags,
            repeating_since=verdict.since,
            negative=self._negative(chunks),
        )
        self.chunks = list(chunks)
        self._units = self._units.copy()
        self._units[self.rows] = units
        self.steps = np.where(revised, 0, self.steps) + slices.present
        self._remember(verdict.counts, validated, here)
        return output

    def _remember(self, counts: Counts, validated: Slice, here: NDArray[np.bool_]) -> None:
        """The counts of all members, and the slices of those who are present."""
        by_row = {name: getattr(self._counts, name).copy() for name in COUNTS}
        for name, numbers in by_row.items():
            numbers[self.rows] = getattr(counts, name)
        self._counts = Counts(**by_row)
        rows = self.rows[here]
        self._last.values[rows], self._last.mask[rows] = validated.values[here], validated.mask[here]

    def _step_chunk(self, slices: _Slices, number: int) -> tuple[Core, Report | None, Any]:
        """The chunk after its slices, what is reported of them, and their cross-prediction."""
        part = slice(number * self._chunk_size, (number + 1) * self._chunk_size)
        core, predicted = self.chunks[number], None
        if (
            number > 0 and not (slices.present | slices.frozen)[part].any()
        ):  # the first is always reported: others take its shapes
            return core, None, None
        values, mask = slices.values[part], slices.mask[part]
        with precision(self.config):
            if slices.revised[part].any():
                core = batching.restart(core, slices.revised[part], self._settings, with_window=True)
            if slices.starting[part].any():
                core = batching.restart(core, slices.starting[part], self._settings, with_window=False)
            if slices.halves is not None:
                predicted = batching.cross_predict_all(core, values, mask, slices.halves[part], self._settings)
            after, report = batching.advance_all(core, values, mask, slices.present[part], self._settings)
            if slices.frozen[part].any():
                report = batching.latest_all(after, slices.frozen[part], report, self._settings)
            return after, report, predicted

    def take(self, position: int) -> Learner:
        """A single model that goes on from where this member is."""
        row = self.rows[position]
        steps, window = int(self.steps[row]), self.config.window
        with precision(self.config):
            chunk = self.chunks[row // self._chunk_size]
            core = jax.tree.map(lambda leaf: leaf[row % self._chunk_size].copy(), chunk)
        missing = np.asarray((~core.window.mask).reshape(self._slots.window, -1).sum(axis=1))
        order = (int(core.window.newest) - np.arange(min(steps, window))[::-1]) % window
        counts = tuple(int(count) for count in missing[order])
        state = State(self.config, self._shape, float(self._units[row]), steps, core, counts)
        numbers = {name: kind(getattr(self._counts, name)[row]) for name, kind in COUNTS.items()}
        last = Slice(self._last.values[row].copy(), self._last.mask[row].copy())
        return Learner(state, History(Counts(**numbers), last if last.mask.any() else None))

    def check(self, learner: Learner) -> None:
        """Refuse a single model that cannot be one of these.

        Raises:
            ValueError: Its settings, or the shapes of its arrays, are others.
        """
        state, alike = learner.state, jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype), self.chunks[0])
        own = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state.core)
        if state.config != self.config or own != alike:
            raise ValueError("model must have the settings of the fleet, and keep whole slices: it has others.")

    def put(self, position: int, learner: Learner) -> None:
        """Let a member go on from where a single model is, which `check` found fit."""
        row, counts = self.rows[position], learner.history.counts
        number, place = divmod(int(row), self._chunk_size)
        with precision(self.config):
            self.chunks[number] = jax.tree.map(
                lambda whole, own: whole.at[place].set(own), self.chunks[number], learner.state.core
            )
        self._units[row], self.steps[row] = learner.state.unit, learner.state.steps
        for name in COUNTS:
            getattr(self._counts, name)[row] = getattr(counts, name)
        last = learner.history.last
        self._last.mask[row] = last.mask if isinstance(last, Slice) else False  # of a file's no more than a digest
        if isinstance(last, Slice):
            self._last.values[row] = last.values

    def packed(self) -> tuple[Core, dict[str, NDArray[Any]]]:
        """The arrays of all models, and what the host remembers of them by name; members first."""
        core = jax.tree.map(lambda *leaves: gathered(leaves, self.rows), *self.chunks)
        numbers: dict[str, NDArray[Any]] = {"units": self._units[self.rows], "steps": self.steps[self.rows]}
        numbers |= {f"history.{name}": getattr(self._counts, name)[self.rows] for name in COUNTS}
        numbers |= {"history.values": self._last.values[self.rows], "history.mask": self._last.mask[self.rows]}
        return core, numbers

    def restore(self, core: Core, numbers: Mapping[str, Any]) -> None:
        """Let the models go on from what `packed` gave, with as many members."""
        self._units[self.rows], self.steps[self.rows] = numbers["units"], numbers["steps"]
        self._recall(numbers)
        members = np.arange(len(self.rows))
        with precision(self.config):
            for number, chunk in enumerate(self.chunks):
                own = members[self.rows // self._chunk_size == number]

                def filled(leaf: Any, saved: Any, own: NDArray[Any] = own) -> NDArray[Any]:
                    whole = np.array(leaf)  # on the host, where nothing is compiled for it
                    used = map(slice, saved.shape[1:])  # files of earlier versions had no empty slots
                    whole[(self.rows[own] % self._chunk_size, *used)] = saved[own]
                    return whole

                self.chunks[number] = jax.device_put(jax.tree.map(filled, chunk, core))

    def _recall(self, arrays: Mapping[str, Any]) -> None:
        """What is remembered of the slices before, from a checkpoint; older ones say nothing about it."""
        rows = self.rows
        if "history.seen" not in arrays:
            self._counts.seen[rows], self._counts.usual[rows] = arrays["steps"], ODD_SLICES
            return
        for name in COUNTS:
            getattr(self._counts, name)[rows] = arrays[f"history.{name}"]
        self._last.values[rows], self._last.mask[rows] = arrays["history.values"], arrays["history.mask"]

    def make_room(self, more: int) -> None:
        """Rows for this many members more, or a sentence where memory is too small."""
        needed = len(self.rows) + more
        size, number = self._chunk_size, len(self.chunks)
        while needed > size * max(number, 1) and number <= 1 and size < platform.current().chunk_members:
            size *= 2
        number = max(number, -(-needed // size), 1)
        if size * number == len(self._units):
            return
        check_fleet_memory(self.config, self._shape, size * number, size)
        with precision(self.config):
            if self.chunks and size > self._chunk_size:
                more = batching.fresh(self._settings, size - self._chunk_size, self._shape, self._slots)
                self.chunks = [batching.joined(self.chunks[0], more)]
            missing = number - len(self.chunks)
            self.chunks += [batching.fresh(self._settings, size, self._shape, self._slots) for _ in range(missing)]
        self._chunk_size = size
        extra = size * number - len(self._units)
        self._units, self.steps = _longer(self._units, extra), _longer(self.steps, extra)
        self._counts = Counts(**{name: _longer(getattr(self._counts, name), extra) for name in COUNTS})
        self._last = Slice(_longer(self._last.values, extra), _longer(self._last.mask, extra))

    def _halves(self, predicting: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """By row, as a single model has them; None where no member needs them."""
        if not predicting.any():
            return None
        halves = np.zeros((len(predicting), *self._shape), np.bool_)
        for steps in np.unique(self.steps[predicting]):
            halves[self.steps == steps] = half_of_shape(self._shape, int(steps))
        return halves

    def _negative(self, chunks: Sequence[Core]) -> tuple[Any, ...] | None:
        with precision(self.config):
            return negative(self.config, chunks, members=True)

    def _joined(self, predictions: Sequence[Any]) -> CrossPrediction:
        """The cross-predictions of all chunks, members first."""
        mean, variance = (
            gathered([None if one is None else one[part] for one in predictions], self.rows) for part in (0, 1)
        )
        return CrossPrediction(mean, np.where(variance > 0, variance, 1))

    def _by_row(self, by_member: NDArray[Any]) -> NDArray[Any]:
        rows = np.zeros((len(self._units), *by_member.shape[1:]), by_member.dtype)
        rows[self.rows] = by_member
        return rows


def _longer(by_row: NDArray[Any], extra: int) -> NDArray[Any]:
    return np.concatenate([by_row, np.zeros((extra, *by_row.shape[1:]), by_row.dtype)])
