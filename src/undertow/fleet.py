"""Fleet: many independent streams of one shape, stepped in one call.

Members live in the rows of chunks of equal size, each one batch on the device (`undertow.engine.batching`). A fleet
that grows fills the rows of those who left, doubles its only chunk until that has the usual size, and gets more chunks
from then on: so nearly nothing is compiled anew.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine import batching
from undertow.engine.exclusive import Exclusive, check_process, exclusive
from undertow.engine.history import COUNTS, ODD_SLICES, Counts, History, judge_members
from undertow.engine.learner import Learner
from undertow.engine.memory import check_fleet_memory
from undertow.engine.output import CrossPrediction, Output, gathered
from undertow.engine.state import State, precision
from undertow.estimator import RobustCP
from undertow.inputs.dense import Slice
from undertow.inputs.members import as_member_slices, positions_of
from undertow.inputs.scaling import Scaling, first_units
from undertow.inputs.split import half_of_shape
from undertow.inputs.transfer import DeviceSlice
from undertow.model import platform
from undertow.model.report import Report
from undertow.model.types import Core
from undertow.results import Result
from undertow.serialization import container, models


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


class Fleet(Exclusive):
    """Thousands of independent streams of one shape: the results of as many `RobustCP`, to rounding.

    Threads may share a fleet: one at a time learns, the others wait. After a fork it is refused; use "spawn".

    Args:
        n: Number of members to begin with; their numbers are 0, 1, …, n − 1.
        shape: Shape of every slice.
        preset: "default" or "fast".
        **settings: Fields of `undertow.Config`, the same for all members.

    Raises:
        TypeError: A number or a shape is not made of integers, or a setting is unknown.
        ValueError: A setting is out of range or not for fleets, or the fleet does not fit into memory.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> fleet = ut.Fleet(3, (6, 5), max_rank=3, window=4)
        >>> x = np.ones((3, 6, 5)) * np.array([1.0, 10.0, 100.0])[:, None, None]
        >>> result = fleet.update(x)
        >>> result.mean.shape, result.rank.shape, result[2].mean.shape
        ((3, 6, 5), (3,), (6, 5))
    """

    def __init__(self, n: int, shape: Sequence[int], preset: str = "default", **settings: Any) -> None:
        self._params = {"preset": preset, **settings}
        config = _validated_config(preset, settings)
        try:
            n, self._shape = operator.index(n), tuple(operator.index(size) for size in shape)
        except TypeError:
            raise TypeError(f"n and shape must be integers, got n={n!r}, shape={shape!r}.") from None
        if n < 0 or not self._shape or min(self._shape) < 1:
            raise ValueError(f"n must be 0 or more and shape have modes of size 1 or more, got {n} and {self._shape}.")
        self._config = config.sized(self._shape)
        self._settings = self._config.settings()
        self._chunk_size = min(1 << max(n - 1, 0).bit_length(), platform.current().chunk_members)
        self._chunks: list[Core] = []
        self._units = np.zeros(0)  # by row, as are the steps, the counts and the last slices
        self._steps = np.zeros(0, np.int64)
        self._counts = Counts(**{name: np.zeros(0, kind) for name, kind in COUNTS.items()})
        self._last = Slice(np.zeros((0, *self._shape)), np.zeros((0, *self._shape), np.bool_))
        self._ids = np.zeros(0, np.int64)
        self._rows = np.zeros(0, np.intp)  # by member
        self._next = 0
        self.join(n)

    @property
    def members(self) -> NDArray[np.int64]:
        """The numbers of all members, in the order in which they joined; a number is never given twice."""
        return self._ids.copy()

    @property
    def config(self) -> Config:
        """The settings of all members."""
        return self._config

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a slice."""
        return self._shape

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Fleet of {len(self)} streams of {'×'.join(map(str, self._shape))}"

    @exclusive
    def update(self, x: Any, mask: Any = None, present: Any = None) -> Result:
        """Learn from the next slice of every member that has one. If one is refused, none is learned.

        Args:
            x: (n, *shape) in the order of `members`, NaN where missing; or a dictionary from number to slice, and those
                who are not in it are absent.
            mask: True where observed, if NaN does not say it; as `x`.
            present: (n,), False for those who have no slice now: their state stays as it is, bit for bit.

        Returns:
            The slices as their models see them, members first.

        Raises:
            TypeError: A slice does not hold real numbers.
            ValueError: A slice has another shape, or infinite values.
            KeyError: A number in the dictionary is not a member.
        """
        validated, here = as_member_slices(x, mask, present, self._ids, self._shape)
        units, steps = self._units[self._rows], self._steps[self._rows]
        counts = Counts(**{name: getattr(self._counts, name)[self._rows] for name in COUNTS})
        last = Slice(self._last.values[self._rows], self._last.mask[self._rows])
        verdict = judge_members(counts, last, validated, here, units, steps, self._config.window)
        learning = here & ~verdict.frozen
        units[verdict.revised] = 0
        without_unit = learning & (units == 0)
        if without_unit.any():
            units[without_unit] = first_units(Slice(validated.values[without_unit], validated.mask[without_unit]))
        scaling = Scaling.of(self._config, units.reshape(-1, *([1] * len(self._shape))))
        revised = self._by_row(verdict.revised)
        predicting = (self._units > 0) & (self._steps > 0) & ~revised & (not self._config.robust)
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
            *_in_threads(partial(self._step_chunk, slices), len(self._chunks)), strict=True
        )
        output = Output(
            config=self._config,
            scaling=scaling,
            reports=reports,
            given=DeviceSlice(validated),
            cross_predicted=None if slices.halves is None else self._joined(predictions),
            rows=self._rows,
            could_predict=predicting[self._rows],
            noticed=verdict.flags,
            repeating_since=verdict.since,
        )
        self._chunks = list(chunks)
        self._units = self._units.copy()
        self._units[self._rows] = units
        self._steps = np.where(revised, 0, self._steps) + slices.present
        self._remember(verdict.counts, validated, here)
        return Result(output, members=self._ids.copy(), present=here)

    def _remember(self, counts: Counts, validated: Slice, here: NDArray[np.bool_]) -> None:
        """The counts of all members, and the slices of those who are present."""
        by_row = {name: getattr(self._counts, name).copy() for name in COUNTS}
        for name, numbers in by_row.items():
            numbers[self._rows] = getattr(counts, name)
        self._counts = Counts(**by_row)
        rows = self._rows[here]
        self._last.values[rows], self._last.mask[rows] = validated.values[here], validated.mask[here]

    def _step_chunk(self, slices: _Slices, number: int) -> tuple[Core, Report | None, Any]:
        """The chunk after its slices, what is reported of them, and their cross-prediction."""
        part = slice(number * self._chunk_size, (number + 1) * self._chunk_size)
        core, predicted = self._chunks[number], None
        if (
            number > 0 and not (slices.present | slices.frozen)[part].any()
        ):  # the first is always reported: others take its shapes
            return core, None, None
        values, mask = slices.values[part], slices.mask[part]
        with precision(self._config):
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

    @exclusive
    def join(self, k: int = 1) -> NDArray[np.int64]:
        """Add members that have seen nothing.

        Args:
            k: How many.

        Returns:
            Their numbers.
        """
        check_process()
        k = operator.index(k)
        if k < 0:
            raise ValueError(f"k must be 0 or more, got {k}.")
        self._grow(len(self) + k)
        free = np.setdiff1d(np.arange(len(self._units)), self._rows)[:k]
        for number in np.unique(free[self._steps[free] > 0] // self._chunk_size):
            which = np.zeros(self._chunk_size, np.bool_)
            which[free[free // self._chunk_size == number] % self._chunk_size] = True
            with precision(self._config):
                self._chunks[number] = batching.restart(self._chunks[number], which, self._settings, with_window=True)
        for by_row in (self._units, self._steps, self._last.mask, *(getattr(self._counts, name) for name in COUNTS)):
            by_row[free] = 0
        ids = np.arange(self._next, self._next + k, dtype=np.int64)
        self._ids, self._rows = np.concatenate([self._ids, ids]), np.concatenate([self._rows, free])
        self._next += k
        return ids

    @exclusive
    def leave(self, ids: Any) -> None:
        """Remove members for good; their rows are given to those who join.

        Args:
            ids: Their numbers, or one number.
        """
        stay = np.ones(len(self), np.bool_)
        stay[positions_of(self._ids, np.atleast_1d(np.asarray(ids)))] = False
        self._ids, self._rows = self._ids[stay], self._rows[stay]

    @exclusive
    def extract(self, member: int) -> RobustCP:
        """A single model that goes on from where this member is; the member stays.

        Args:
            member: Its number.

        Returns:
            The model.

        Raises:
            ValueError: The member has seen no slice yet.
        """
        row = self._rows[positions_of(self._ids, np.asarray([member]))[0]]
        steps, window = int(self._steps[row]), self._config.window
        if steps == 0:
            raise ValueError(f"member {member} has seen no slice yet: make a new RobustCP instead.")
        with precision(self._config):
            chunk = self._chunks[row // self._chunk_size]
            core = jax.tree.map(lambda leaf: leaf[row % self._chunk_size].copy(), chunk)
        missing = np.asarray((~core.window.mask).reshape(window, -1).sum(axis=1))
        order = (int(core.window.newest) - np.arange(min(steps, window))[::-1]) % window
        counts = tuple(int(count) for count in missing[order])
        state = State(self._config, self._shape, float(self._units[row]), steps, core, counts)
        model = RobustCP(**self._params)
        numbers = {name: kind(getattr(self._counts, name)[row]) for name, kind in COUNTS.items()}
        last = Slice(self._last.values[row].copy(), self._last.mask[row].copy())
        history = History(Counts(**numbers), last if last.mask.any() else None)
        model._learner = Learner(state, history)
        return model

    @exclusive
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all members to one file, atomically.

        Args:
            path: The file.

        Raises:
            CheckpointError: It cannot be written.
        """
        container.write(path, *self._packed())

    @exclusive
    def to_bytes(self) -> bytes:
        """All members as bytes, the same that `save` writes; `Fleet.from_bytes` goes on from them."""
        return container.to_bytes(*self._packed())

    def _packed(self) -> models.Checkpoint:
        leaves = [jax.tree_util.tree_flatten_with_path(chunk)[0] for chunk in self._chunks]
        arrays = {
            models.name_of(same[0][0]): gathered([leaf for _, leaf in same], self._rows)
            for same in zip(*leaves, strict=True)
        }
        numbers: dict[str, NDArray[Any]] = {
            "ids": self._ids,
            "units": self._units[self._rows],
            "steps": self._steps[self._rows],
        }
        numbers |= {f"history.{name}": getattr(self._counts, name)[self._rows] for name in COUNTS}
        numbers |= {"history.values": self._last.values[self._rows], "history.mask": self._last.mask[self._rows]}
        header = {"params": self._params, "shape": list(self._shape), "next": self._next}
        return models.packed_fleet(header, {**arrays, **numbers})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The fleet that `save` wrote; it goes on exactly where it stopped.

        Args:
            path: The file.

        Returns:
            The fleet.

        Raises:
            CheckpointError: The file is damaged, or does not hold a fleet of this version.
        """
        return cls._unpacked(container.read(path), os.fspath(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The fleet that `to_bytes` gave; it goes on exactly where it stopped.

        Args:
            data: The bytes.

        Returns:
            The fleet.

        Raises:
            CheckpointError: They are damaged, or do not hold a fleet of this version.
        """
        content, name = container.given_bytes(data)
        return cls._unpacked(container.from_bytes(content, name), name)

    @classmethod
    def _unpacked(cls, checkpoint: models.Checkpoint, name: str) -> Self:
        header, arrays = models.unpacked_fleet(
            checkpoint, name, lambda params: _validated_config(params.pop("preset"), params)
        )
        fleet = cls(len(arrays["ids"]), header["shape"], **header["params"])
        fleet._ids, fleet._next = arrays["ids"], int(header["next"])
        fleet._units[fleet._rows], fleet._steps[fleet._rows] = arrays["units"], arrays["steps"]
        fleet._recall(arrays)
        with precision(fleet._config):
            for number, chunk in enumerate(fleet._chunks):
                part = slice(number * fleet._chunk_size, min((number + 1) * fleet._chunk_size, len(fleet)))
                leaves, tree = jax.tree_util.tree_flatten_with_path(chunk)
                filled = [np.array(leaf) for _, leaf in leaves]  # on the host, where nothing is compiled for it
                for (keys, _), whole in zip(leaves, filled, strict=True):
                    whole[: part.stop - part.start] = arrays[models.name_of(keys)][part]
                fleet._chunks[number] = jax.device_put(jax.tree_util.tree_unflatten(tree, filled))
        return fleet

    def _recall(self, arrays: Mapping[str, Any]) -> None:
        """What is remembered of the slices before, from a checkpoint; older ones say nothing about it."""
        rows = self._rows
        if "history.seen" not in arrays:
            self._counts.seen[rows], self._counts.usual[rows] = arrays["steps"], ODD_SLICES
            return
        for name in COUNTS:
            getattr(self._counts, name)[rows] = arrays[f"history.{name}"]
        self._last.values[rows], self._last.mask[rows] = arrays["history.values"], arrays["history.mask"]

    def _grow(self, needed: int) -> None:
        """Make rows for at least this many members."""
        size, number = self._chunk_size, len(self._chunks)
        while needed > size * max(number, 1) and number <= 1 and size < platform.current().chunk_members:
            size *= 2
        number = max(number, -(-needed // size), 1)
        if size * number == len(self._units):
            return
        check_fleet_memory(self._config, self._shape, size * number, size)
        with precision(self._config):
            if self._chunks and size > self._chunk_size:
                more = batching.fresh(self._settings, size - self._chunk_size, self._shape)
                self._chunks = [batching.joined(self._chunks[0], more)]
            self._chunks += [
                batching.fresh(self._settings, size, self._shape) for _ in range(number - len(self._chunks))
            ]
        self._chunk_size = size
        extra = size * number - len(self._units)
        self._units, self._steps = _longer(self._units, extra), _longer(self._steps, extra)
        self._counts = Counts(**{name: _longer(getattr(self._counts, name), extra) for name in COUNTS})
        self._last = Slice(_longer(self._last.values, extra), _longer(self._last.mask, extra))

    def _halves(self, predicting: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """By row, as a single model has them; None where no member needs them."""
        if not predicting.any():
            return None
        halves = np.zeros((len(predicting), *self._shape), np.bool_)
        for steps in np.unique(self._steps[predicting]):
            halves[self._steps == steps] = half_of_shape(self._shape, int(steps))
        return halves

    def _joined(self, predictions: Sequence[Any]) -> CrossPrediction:
        """The cross-predictions of all chunks, members first."""
        mean, variance = (
            gathered([None if one is None else one[part] for one in predictions], self._rows) for part in (0, 1)
        )
        return CrossPrediction(mean, np.where(variance > 0, variance, 1))

    def _by_row(self, by_member: NDArray[Any]) -> NDArray[Any]:
        rows = np.zeros((len(self._units), *by_member.shape[1:]), by_member.dtype)
        rows[self._rows] = by_member
        return rows


def _validated_config(preset: str, settings: Mapping[str, Any]) -> Config:
    config = make_config(preset, **settings)
    if config.start == "svd" or config.outliers != "contaminated":
        raise ValueError("a fleet has start='warm' and outliers='contaminated': use single RobustCP models for others.")
    return config


def _longer(by_row: NDArray[Any], extra: int) -> NDArray[Any]:
    return np.concatenate([by_row, np.zeros((extra, *by_row.shape[1:]), by_row.dtype)])


def _in_threads(work: Any, count: int) -> list[Any]:
    """The work of all chunks, several at a time."""
    if count == 1:
        return [work(0)]
    with ThreadPoolExecutor(platform.current().chunk_threads) as pool:
        return list(pool.map(work, range(count)))
