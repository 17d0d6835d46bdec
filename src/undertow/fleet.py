"""Fleet: many independent streams of one shape, stepped in one call.

A shell over what steps them: `undertow.engine.chunks` for CP models, `undertow.tracker.fleet` for trackers. Here are
the numbers of the members, who joins and who leaves.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine.chunks import Chunks
from undertow.engine.exclusive import Exclusive, check_process, exclusive
from undertow.engine.history import History
from undertow.engine.learner import Learner
from undertow.estimator import RobustCP
from undertow.inputs.members import as_member_slices, positions_of, times_of
from undertow.results import Result
from undertow.serialization import container, models
from undertow.tracker import fleet_files, rearranging
from undertow.tracker.estimator import Tracker, from_state
from undertow.tracker.fleet import Trackers
from undertow.tracker.forecast import Forecast
from undertow.tracker.state import copied


class Fleet(Exclusive):
    """Thousands of independent streams of one shape: the results of as many single models, to rounding.

    Threads may share a fleet: one at a time learns, the others wait. After a fork it is refused; use "spawn".

    Args:
        n: Number of members to begin with; their numbers are 0, 1, …, n − 1.
        shape: Shape of every slice.
        preset: "default" or "fast".
        model: What every member is: "cp", a `RobustCP` with these settings; or "tracker", a `Tracker`, which has none.
        period: Slices of a season of all trackers, or "auto" to find one for each; then they have seasons and
            `forecast`, which take memory and time. By default they have none.
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

    def __init__(
        self,
        n: int,
        shape: Sequence[int],
        preset: str = "default",
        *,
        model: str = "cp",
        period: int | str | None = None,
        **settings: Any,
    ) -> None:
        self._params = {"preset": preset, **settings}
        config = validated_config(model, preset, settings)
        if period is not None and config is not None:
            raise ValueError(f"period is for model='tracker', got {period!r} with 'cp': leave it out.")
        try:
            n, self._shape = operator.index(n), tuple(operator.index(size) for size in shape)
        except TypeError:
            raise TypeError(f"n and shape must be integers, got n={n!r}, shape={shape!r}.") from None
        if n < 0 or not self._shape or min(self._shape) < 1:
            raise ValueError(f"n must be 0 or more and shape have modes of size 1 or more, got {n} and {self._shape}.")
        self._streams: Chunks | Trackers
        if config is None:
            self._streams = Trackers(self._shape, _season(period))
        else:
            self._streams = Chunks(config.sized(self._shape), self._shape, n)
        self._ids = np.zeros(0, np.int64)
        self._next = 0
        self.join(n)

    @property
    def members(self) -> NDArray[np.int64]:
        """The numbers of all members, in the order in which they joined; a number is never given twice."""
        return self._ids.copy()

    @property
    def config(self) -> Config | None:
        """The settings of all members; None of trackers, which have none."""
        return self._streams.config if isinstance(self._streams, Chunks) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a slice."""
        return self._shape

    @property
    def _kind(self) -> str:
        return "trackers" if isinstance(self._streams, Trackers) else "streams"

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Fleet of {len(self)} {self._kind} of {'×'.join(map(str, self._shape))}"

    @exclusive
    def update(self, x: Any, mask: Any = None, present: Any = None, time: Any = None) -> Result:
        """Learn from the next slice of every member that has one. If one is refused, none is learned.

        Args:
            x: (n, *shape) in the order of `members`, NaN where missing; or a dictionary from number to slice, and those
                who are not in it are absent.
            mask: True where observed, if NaN does not say it; as `x`.
            present: (n,), False for those who have no slice now: their state stays as it is, bit for bit.
            time: When the slices were observed, as for `Tracker.update`, of trackers: one time for all, or a list or
                dictionary of times as `x`.

        Returns:
            The slices as their models see them, members first. A fleet of trackers has `weights` as (n, K).

        Raises:
            TypeError: A slice does not hold real numbers, or a time is none.
            ValueError: A slice has another shape, or infinite values, or is not later than the one before.
            KeyError: A number in the dictionary is not a member.
        """
        given, here = as_member_slices(x, mask, present, self._ids, self._shape)
        if isinstance(self._streams, Trackers):
            output: Any = self._streams.update(given, here, times_of(time, self._ids))
        elif time is None:
            output = self._streams.update(given, here)
        else:
            raise ValueError(f"time is for model='tracker', got {time!r} with 'cp': leave it out.")
        return Result(output, members=self._ids.copy(), present=here)  # both kinds have its methods

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
        self._streams.make_room(k)  # first: that many numbers may not fit into memory either
        ids = np.arange(self._next, self._next + k, dtype=np.int64)
        self._streams.join(ids)
        self._ids = np.concatenate([self._ids, ids])
        self._next += k
        return ids

    @exclusive
    def leave(self, ids: Any) -> None:
        """Remove members for good; their rows are given to those who join.

        Args:
            ids: Their numbers, or one number.
        """
        positions = positions_of(self._ids, np.atleast_1d(np.asarray(ids)))
        self._streams.leave(positions)
        self._ids = np.delete(self._ids, positions)

    @exclusive
    def extract(self, member: int) -> RobustCP | Tracker:
        """A single model that goes on from where this member is; the member stays.

        Args:
            member: Its number.

        Returns:
            The model.

        Raises:
            ValueError: The member has seen no slice yet.
        """
        position = int(positions_of(self._ids, np.asarray([member]))[0])
        if isinstance(self._streams, Trackers):
            state = self._streams.take(position)
            if state.seen == 0:
                raise ValueError(f"member {member} has seen no slice yet: make a new Tracker instead.")
            return from_state(state)
        learner = self._streams.take(position)
        if learner.state.steps == 0:
            raise ValueError(f"member {member} has seen no slice yet: make a new RobustCP instead.")
        model = RobustCP(**self._params)
        model._learner = learner
        return model

    @exclusive
    def forecast(self, slices: int = 1, members: Any = None) -> dict[int, Forecast]:
        """The slices that come next for members of a fleet of trackers with seasons; nothing is learned.

        Args:
            slices: How many, 1 to 10,000.
            members: Their numbers, or one number; all that have seen a slice if left out.

        Returns:
            By number what `Tracker.forecast` gives.

        Raises:
            KeyError: A number is not a member.
            ValueError: The fleet has no seasons, or a member that was named has seen no slice yet.
        """
        if not isinstance(self._streams, Trackers) or self._streams.period is None:
            raise ValueError(
                "forecast needs a fleet of trackers with seasons: Fleet(n, shape, model='tracker', period='auto')."
            )
        if members is None:
            members = [one for one in self._ids.tolist() if self._streams.pasts[one].seen]
        asked = np.atleast_1d(np.asarray(members))
        positions_of(self._ids, asked)
        return {one: cast(Tracker, self.extract(one)).forecast(slices) for one in asked.tolist()}

    @exclusive
    def adopt(self, model: RobustCP | Tracker) -> int:
        """A new member that goes on from where a single model is: what `extract` gave, here or in another fleet.

        With `to_bytes` and `undertow.from_bytes` members travel one by one. A tracker's season stays behind where the
        fleet has none (`period`). A CP model must have the settings of the fleet.

        Args:
            model: The single model; it stays as it is.

        Returns:
            The number of the member.

        Raises:
            TypeError: It is not of the kind of the members.
            ValueError: It has seen no slice, has slices of another shape, or other settings.
        """
        trackers = isinstance(self._streams, Trackers)
        if not isinstance(model, Tracker if trackers else RobustCP):
            wanted = "Tracker" if trackers else "RobustCP"
            raise TypeError(f"model must be a {wanted}, as the other members are, got {type(model).__name__}.")
        if model._slice_shape() is None:
            raise ValueError("model has seen no slice yet: use join(1) for a member that has seen nothing.")
        if model._slice_shape() != self._shape:
            raise ValueError(f"model must have slices of shape {self._shape}, got {model._slice_shape()}.")
        if isinstance(model, RobustCP) and isinstance(self._streams, Chunks):
            learner = model._learner
            assert learner is not None  # it has a shape
            self._streams.check(learner)
            member = int(self.join(1)[0])
            self._streams.put(-1, learner)
        else:
            assert isinstance(model, Tracker)
            assert isinstance(self._streams, Trackers)
            member = int(self.join(1)[0])
            self._streams.put(member, copied(model._learned("adopt")))
        return member

    @exclusive
    def rearrange(self, member: int, places: Sequence[NDArray[np.int64]]) -> None:
        """Other rows for a member, in slices of the same shape; who is there anew has not been seen.

        Args:
            member: Its number.
            places: For every mode, which of its former rows stands at each place; −1 for one that is new.
        """
        position = int(positions_of(self._ids, np.asarray([member]))[0])
        if isinstance(self._streams, Trackers):
            self._streams.put(member, rearranging.rearranged(self._streams.take(position), places))
            return
        learner = self._streams.take(position)
        state = rearranging.model(learner.state, places)
        self._streams.put(position, Learner(state, learner.history))

    @exclusive
    def extend(self, shape: Sequence[int]) -> None:
        """Further rows at the ends of modes, for all members; nobody has observed them, and nothing else changes.

        Args:
            shape: Of slices from now on; as many rows as before in every mode, or more.

        Raises:
            ValueError: Some mode would have less rows.
        """
        places = rearranging.extended(self._shape, shape)
        shape = tuple(map(len, places))
        before, n = self._streams, len(self._ids)
        if isinstance(before, Trackers):
            wider = Trackers(shape, before.period)
            wider.make_room(n)
            wider.join(self._ids)
            for position, member in enumerate(self._ids.tolist()):
                if before.pasts[member].seen:
                    wider.put(member, rearranging.rearranged(before.take(position), places))
            self._streams = wider
        else:
            self._params["max_rank"] = before.config.max_rank  # as it was, though larger slices would have more
            chunks = Chunks(before.config, shape, n)
            chunks.make_room(n)
            chunks.join(self._ids)
            for position in np.flatnonzero(before.steps[before.rows]).tolist():
                learner = before.take(position)
                chunks.put(position, Learner(rearranging.model(learner.state, places), History(learner.history.counts)))
            self._streams = chunks
        self._shape = shape

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
        header = {"shape": list(self._shape), "next": self._next}
        if isinstance(self._streams, Trackers):
            more, arrays = fleet_files.packed(self._streams)
            return models.packed_fleet({**header, **more}, {"ids": self._ids, **arrays})
        core, numbers = self._streams.packed()
        return models.packed_fleet({**header, "params": self._params}, {"ids": self._ids, **numbers}, core)

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
        if fleet_files.holds_trackers(checkpoint):
            header, arrays = checkpoint
            fleet = cls(0, header["shape"], model="tracker")
            fleet._streams = fleet_files.unpacked(checkpoint, name)
        else:
            header, arrays, core = models.unpacked_fleet(
                checkpoint, name, lambda params: _cp_config(params.pop("preset"), params)
            )
            fleet = cls(len(arrays["ids"]), header["shape"], **header["params"])
            assert isinstance(fleet._streams, Chunks)
            fleet._streams.restore(core, arrays)
        fleet._ids, fleet._next = arrays["ids"], int(header["next"])
        return fleet


def validated_config(model: str, preset: str, settings: Mapping[str, Any]) -> Config | None:
    """The settings of a fleet's CP models, checked; None of trackers."""
    if model == "cp":
        return _cp_config(preset, settings)
    if model != "tracker":
        raise ValueError(f"model must be 'cp' or 'tracker', got {model!r}.")
    given = [*settings, *(["preset"] if preset != "default" else [])]
    if given:
        raise ValueError(f"a tracker has nothing to set, got {', '.join(given)}: leave it out, or use model='cp'.")
    return None


def _season(period: Any) -> int | None:
    """The period as `Trackers` takes it."""
    if isinstance(period, str) and period == "auto":
        return 0
    if period is None or (isinstance(period, int | np.integer) and not isinstance(period, bool) and period >= 2):
        return None if period is None else int(period)
    raise ValueError(
        f"period must be an integer of at least 2, in slices, or 'auto' to find it, or None for no seasons, "
        f"got {period!r}."
    )


def _cp_config(preset: str, settings: Mapping[str, Any]) -> Config:
    config = make_config(preset, **settings)
    if config.start == "svd" or config.outliers != "contaminated":
        raise ValueError("a fleet has start='warm' and outliers='contaminated': use single RobustCP models for others.")
    return config
