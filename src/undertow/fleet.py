"""Fleet: many independent streams of one shape, stepped in one call.

Members live in chunks of equal size, each one batch on the device (model/batch.py). On CPUs chunks are small enough for
the cache and are stepped by several threads; on GPUs they are large. A fleet that grows fills the places of those who
left, doubles its only chunk until that has the usual size, and gets more chunks from then on: so nearly nothing is
compiled anew.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine import batching as batch
from undertow.engine import functional
from undertow.engine.functional import State, scope
from undertow.engine.output import CrossPrediction, Output, gathered
from undertow.engine.selection import Member, Panel
from undertow.estimator import RobustCP
from undertow.inputs.dense import Slice, as_slice, peek_shape
from undertow.inputs.packing import half_of_all
from undertow.inputs.scaling import Given, Scaling, first_units
from undertow.model.phases.infer import Report
from undertow.model.types import Core
from undertow.results import Result
from undertow.serialization import models as saving

CHUNK = {"cpu": 128, "other": 32768}
"""Members per chunk, at most."""
REFUSED = ("default", "paper")
"""Presets that a fleet does not know: one chooses settings for each stream, the other is a model of its own."""


class Fleet:
    """Thousands of independent streams of one shape: the results of as many ``RobustCP(preset="fixed")``, to rounding.

    Args:
        n: how many members to begin with; their numbers are 0, 1, …, n − 1.
        shape: shape of every slice.
        preset: "fixed"; nothing is chosen automatically.
        settings: as of `RobustCP`, the same for all members.

    >>> import numpy as np, undertow as ut
    >>> fleet = ut.Fleet(3, (5, 4), max_rank=2, window=4)
    >>> x = np.ones((3, 5, 4)) * np.array([1.0, 10.0, 100.0])[:, None, None]
    >>> result = fleet.update(x)
    >>> result.low_rank.shape, result.rank.shape, result[2].low_rank.shape
    ((3, 5, 4), (3,), (5, 4))
    """

    def __init__(self, n: int, shape: Sequence[int], preset: str = "fixed", **settings: Any) -> None:
        self._params = {"preset": preset, **settings}
        self._config = _checked(preset, settings)
        self._settings = self._config.settings()
        try:
            n, self._shape = operator.index(n), tuple(operator.index(size) for size in shape)
        except TypeError:
            raise TypeError(f"n and shape must be whole numbers, got n={n!r}, shape={shape!r}.") from None
        if n < 0 or not self._shape or min(self._shape) < 1:
            raise ValueError(f"n must be 0 or more and shape have modes of size 1 or more, got {n} and {self._shape}.")
        self._size = min(_power_of_two(n), CHUNK[_kind()])
        self._chunks: list[Core] = []
        self._units = np.zeros(0)
        self._steps = np.zeros(0, np.int64)
        self._ids = np.zeros(0, np.int64)
        self._places = np.zeros(0, np.intp)
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

    def update(self, x: Any, mask: Any = None, present: Any = None) -> Result:
        """The next slice of every member that has one. All or nothing: if one is refused, nobody has learned anything.

        Args:
            x: (n, *shape) in the order of `members`, NaN where missing; or a dictionary from number to slice, and those
                who are not in it are absent.
            mask: True where observed, if NaN does not say it; as `x`.
            present: (n,), False for those who have no slice now: their state stays as it is, bit for bit.
        """
        piece, here = self._from_dict(x, mask, present) if isinstance(x, Mapping) else self._door(x, mask, present)
        units = self._units[self._places]
        new = here & (units == 0)
        if new.any():
            units[new] = first_units(Slice(piece.values[new], piece.mask[new]))
            new &= units > 0
        scaling = Scaling.of(self._config, units.reshape(-1, *([1] * len(self._shape))))
        capacity = len(self._units)
        values = np.zeros((capacity, *self._shape), self._config.dtype)
        values[self._places] = scaling.scaled(piece.values)
        masks = self._spread(piece.mask, np.zeros((capacity, *self._shape), np.bool_))
        beginning, on_board = (self._spread(one, np.zeros(capacity, np.bool_)) for one in (new, here))
        cross_predicts = (
            (self._units > 0) & (self._steps > 0) if not self._config.robust else np.zeros(capacity, np.bool_)
        )
        halves = self._halves(cross_predicts)

        def chunk(number: int) -> tuple[Core, Report | None, Any]:
            part = slice(number * self._size, (number + 1) * self._size)
            core, cross_predicted = self._chunks[number], None
            if number > 0 and not on_board[part].any():
                return core, None, None
            with scope(self._config):
                if beginning[part].any():
                    core = batch.restart(core, beginning[part], self._settings, with_window=False)
                if halves is not None:
                    cross_predicted = batch.cross_predict_all(
                        core, values[part], masks[part], halves[part], self._settings
                    )
                return *batch.advance_all(
                    core, values[part], masks[part], on_board[part], self._settings
                ), cross_predicted

        chunks, reports, cross_predicted = zip(*_in_threads(chunk, len(self._chunks)), strict=True)
        output = Output(
            config=self._config,
            scaling=scaling,
            reports=reports,
            given=Given(piece),
            cross_predicted=None if halves is None else self._joined(cross_predicted),
            rows=self._places,
            could_predict=cross_predicts[self._places],
        )
        self._chunks, self._units = list(chunks), self._spread(units, self._units.copy())
        self._steps = self._steps + on_board
        return Result(output, members=self._ids.copy(), present=here)

    def join(self, k: int = 1) -> NDArray[np.int64]:
        """New members that have seen nothing; returns their numbers."""
        k = operator.index(k)
        if k < 0:
            raise ValueError(f"k must be 0 or more, got {k}.")
        self._grow(len(self) + k)
        free = np.setdiff1d(np.arange(len(self._units)), self._places)[:k]
        used = self._steps[free] > 0
        for number in np.unique(free[used] // self._size):
            which = np.zeros(self._size, np.bool_)
            which[free[free // self._size == number] % self._size] = True
            with scope(self._config):
                self._chunks[number] = batch.restart(self._chunks[number], which, self._settings, with_window=True)
        self._units[free], self._steps[free] = 0.0, 0
        ids = np.arange(self._next, self._next + k, dtype=np.int64)
        self._ids, self._places = np.concatenate([self._ids, ids]), np.concatenate([self._places, free])
        self._next += k
        return ids

    def leave(self, ids: Any) -> None:
        """Members that go for good; their places are given to those who join."""
        stay = np.ones(len(self), np.bool_)
        stay[self._positions(np.atleast_1d(np.asarray(ids)))] = False
        self._ids, self._places = self._ids[stay], self._places[stay]

    def extract(self, member: int) -> RobustCP:
        """A model that goes on alone from where this member stands; the member stays."""
        place = self._places[self._positions(np.asarray([member]))[0]]
        steps = int(self._steps[place])
        if steps == 0:
            raise ValueError(f"member {member} has seen no slice yet: make a new RobustCP instead.")
        with scope(self._config):
            core = jax.tree.map(lambda leaf: leaf[place % self._size].copy(), self._chunks[place // self._size])
        gaps = np.asarray((~core.window.mask).reshape(self._config.window, -1).sum(axis=1))
        order = (int(core.window.newest) - np.arange(min(steps, self._config.window))[::-1]) % self._config.window
        missing = tuple(int(count) for count in gaps[order])
        state = State(self._config, self._shape, float(self._units[place]), steps, core, missing)
        model = RobustCP(**self._params)
        model._panel = Panel((self._config,), (Member(state),), steps, np.full(self._shape, np.nan), 0, 0)
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all members to one file, atomically."""
        leaves = [jax.tree_util.tree_flatten_with_path(chunk)[0] for chunk in self._chunks]
        arrays = {
            saving.name_of(same[0][0]): gathered([leaf for _, leaf in same], self._places)
            for same in zip(*leaves, strict=True)
        }
        numbers = {"ids": self._ids, "units": self._units[self._places], "steps": self._steps[self._places]}
        header = {"params": self._params, "shape": list(self._shape), "next": self._next}
        saving.save_fleet(path, header, {**arrays, **numbers})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The fleet that `save` wrote; it goes on exactly where it stopped."""
        header, arrays = saving.load_fleet(path, lambda params: _checked(**_separate(params)))
        fleet = cls(len(arrays["ids"]), header["shape"], **header["params"])
        fleet._ids, fleet._next = arrays["ids"], int(header["next"])
        fleet._units[fleet._places], fleet._steps[fleet._places] = arrays["units"], arrays["steps"]
        with scope(fleet._config):
            for number, chunk in enumerate(fleet._chunks):
                part = slice(number * fleet._size, min((number + 1) * fleet._size, len(fleet)))
                leaves, tree = jax.tree_util.tree_flatten_with_path(chunk)
                new = [
                    leaf.at[: part.stop - part.start].set(arrays[saving.name_of(name)][part]) for name, leaf in leaves
                ]
                fleet._chunks[number] = jax.tree_util.tree_unflatten(tree, new)
        return fleet

    def _door(self, x: Any, mask: Any, present: Any) -> tuple[Slice, NDArray[np.bool_]]:
        """Checked slices of all members, and who is present."""
        n, wanted = len(self), (len(self), *self._shape)
        here = np.ones(n, np.bool_) if present is None else np.asarray(present)
        if here.shape != (n,) or here.dtype.kind != "b":
            raise ValueError(f"present must be {n} times True or False, one per member, got {_kind_of(here)}.")
        if peek_shape(x) != wanted:
            raise ValueError(f"x must have shape {wanted}, a slice for each of the {n} members, got {peek_shape(x)}.")
        if not here.all():  # what stands in the place of the absent is nobody's business
            there = np.broadcast_to(here.reshape(-1, *([1] * len(self._shape))), wanted)
            mask = there if mask is None else there & np.asarray(mask)
        try:
            return as_slice(x, mask), here.copy()
        except ValueError:
            self._blame(x, mask)
            raise

    def _from_dict(self, x: Mapping[int, Any], mask: Any, present: Any) -> tuple[Slice, NDArray[np.bool_]]:
        if present is not None or not isinstance(mask, (Mapping, type(None))):
            raise TypeError("with x as a dictionary, mask must be one too and present is who is in it: leave it out.")
        positions, pieces = self._positions(np.asarray(list(x))), []
        for member, one in x.items():
            try:
                pieces.append(as_slice(one, None if mask is None else mask.get(member), shape=self._shape))
            except (TypeError, ValueError) as error:
                raise type(error)(f"member {member}: {error}") from None
        wanted = len(self), *self._shape
        values = np.zeros(wanted, np.result_type(np.float32, *(piece.values.dtype for piece in pieces)))
        observed = np.zeros(wanted, np.bool_)
        for position, piece in zip(positions, pieces, strict=True):
            values[position], observed[position] = piece.values, piece.mask
        here = np.zeros(len(self), np.bool_)
        here[positions] = True
        return Slice(values, observed), here

    def _blame(self, x: Any, mask: Any) -> None:
        """Say whose slice it is that is infinite."""
        values = np.ma.filled(x, np.nan) if isinstance(x, np.ma.MaskedArray) else np.asarray(x, np.float64)
        infinite = np.isinf(values) if mask is None else np.isinf(values) & np.asarray(mask, np.bool_)
        bad = np.flatnonzero(infinite.reshape(len(self), -1).any(axis=1))
        if bad.size:
            raise ValueError(
                f"member {self._ids[bad[0]]}: x must be finite where observed, and {bad.size} of {len(self)} members "
                "have infinite entries: set them to NaN if they are missing"
            ) from None

    def _positions(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Where these members stand in `members`."""
        if ids.size == 0:
            return np.zeros(0, np.intp)
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise TypeError(f"members have whole numbers, got {ids.tolist()!r}.")
        found = np.searchsorted(self._ids, ids)  # numbers only ever grow
        known = (found < len(self)) & (self._ids[np.minimum(found, len(self) - 1)] == ids) if len(self) else ids < 0
        if not known.all():
            raise KeyError(f"member {ids[~known][0]} is not in the fleet: it has left, or never joined.")
        if len(np.unique(ids)) < len(ids):
            raise ValueError("a member is named twice: name each once.")
        return found

    def _grow(self, needed: int) -> None:
        """Room for so many."""
        size, number = self._size, len(self._chunks)
        while needed > size * max(number, 1) and number <= 1 and size < CHUNK[_kind()]:
            size *= 2
        number = max(number, -(-needed // size), 1)
        if size * number == len(self._units):
            return
        self._check_memory(size * number, size)
        with scope(self._config):
            if self._chunks and size > self._size:
                more = batch.fresh(self._settings, size - self._size, self._shape)
                self._chunks = [jax.tree.map(lambda a, b: jax.numpy.concatenate([a, b]), self._chunks[0], more)]
            self._chunks += [batch.fresh(self._settings, size, self._shape) for _ in range(number - len(self._chunks))]
        self._size = size
        extra = size * number - len(self._units)
        self._units = np.concatenate([self._units, np.zeros(extra)])
        self._steps = np.concatenate([self._steps, np.zeros(extra, np.int64)])

    def _check_memory(self, capacity: int, size: int) -> None:
        kept, worked = functional.memory(self._config, self._shape)
        device = jax.devices()[0].memory_stats() if _kind() == "other" else None
        free = device["bytes_limit"] - device["bytes_in_use"] if device else functional.free_memory()
        needed = 2 * capacity * kept + min(capacity, size * _workers()) * worked
        if needed > free:
            raise ValueError(
                f"{capacity} members of shape {self._shape} with window={self._config.window} and "
                f"max_rank={self._config.max_rank} need about {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are "
                "free: use fewer members, or a smaller window or max_rank."
            )

    def _halves(self, cross_predicts: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """For models that are not robust: which half of its slice each entry belongs to, as a single model has it."""
        if not cross_predicts.any():
            return None
        halves = np.zeros((len(cross_predicts), *self._shape), np.bool_)
        for steps in np.unique(self._steps[cross_predicts]):
            halves[self._steps == steps] = half_of_all(self._shape, int(steps))
        return halves

    def _joined(self, cross_predicted: Sequence[Any]) -> CrossPrediction:
        """What was foretold, members first."""
        mean, variance = (
            gathered([None if one is None else one[part] for one in cross_predicted], self._places) for part in (0, 1)
        )
        return CrossPrediction(mean, np.where(variance > 0, variance, 1))

    def _spread(self, by_member: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
        places[self._places] = by_member
        return places


def _checked(preset: str, settings: Mapping[str, Any]) -> Config:
    if preset in REFUSED:
        raise ValueError(f"preset must be 'fixed' in a fleet, got {preset!r}: use single RobustCP models for that.")
    config = make_config(preset, **settings)
    if config.start == "svd" or config.outliers != "contaminated":
        raise ValueError("a fleet has start='warm' and outliers='contaminated': use single RobustCP models for others.")
    return config


def _separate(params: dict[str, Any]) -> dict[str, Any]:
    return {"preset": params["preset"], "settings": {k: v for k, v in params.items() if k != "preset"}}


def _in_threads(work: Any, count: int) -> list[Any]:
    """The work of all chunks; several at a time, since one alone keeps neither all cores nor a GPU busy."""
    if count == 1:
        return [work(0)]
    with ThreadPoolExecutor(_workers()) as pool:
        return list(pool.map(work, range(count)))


def _workers() -> int:
    return (os.cpu_count() or 1) if _kind() == "cpu" else 4


def _kind() -> str:
    return "cpu" if jax.default_backend() == "cpu" else "other"


def _kind_of(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
