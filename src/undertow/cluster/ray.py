"""Fleets on Ray: actors that each own a shard, and a device where there are some.

Batches of rows have offsets 0, 1, 2, …. Every actor learns its part of each batch, and writes its shard with the offset
to a file every few batches, all of them after the same ones. An actor that is killed is started again by Ray, reads its
file, and is given the batches since then once more. A job that is killed goes on from the newest offset that all have.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from undertow.cluster.packages import absent
from undertow.cluster.partition import shard_of
from undertow.cluster.plan import Plan, plan
from undertow.cluster.shard import END, Shard
from undertow.serialization import container
from undertow.serialization.container import CheckpointError

try:
    import numpy as np
    import pandas
    import ray
except ImportError as error:
    raise absent("ray", "ray", error) from None

from undertow.cluster.frames import add, frame, numbered, one_thread, span  # pandas is there

KEPT = 2
"""Files of each shard: while some have written the newest, the others have the one before."""
ATTEMPTS = 5
"""How often in a row an actor may be killed over the same batch."""
RESTART_S = 300
"""How long starting an actor again may take. Until it is done, Ray refuses immediately whatever the actor is asked."""
_log = logging.getLogger("undertow.cluster")


class Behind(ValueError):
    """An actor was given a batch that is not its next one: it was started again since its last answer."""


def apply(
    batches: Sequence[Any] | Callable[[int], Iterable[Any]],
    *,
    key: str,
    time: str,
    modes: Any,
    value: str,
    model: Any,
    folder: str | os.PathLike[str],
    shards: int = 2,
    every: int = 10,
    gpus: float = 0,
    late: Any = None,
    ttl: Any = None,
    false_alarms: str | float | None = None,
    dates: bool = True,
) -> Iterator[tuple[int, Any]]:
    """Learn every stream of a sequence of batches, in order, each with a model of its own.

    Args:
        batches: DataFrames of pandas, one row an entry or a packed slice; or a function that gives them from an offset
            on, which is asked again after a restart.
        key: Column with the name of the stream.
        time: Column with the time of the slice: dates or integers.
        modes: Columns with the labels of an entry, and all labels of each, or how many there may be at a time; or the
            shape of packed slices.
        value: Column with the value of the entry; of packed slices an array of all.
        model: What every stream gets, new: ``ut.Tracker()``, or ``ut.RobustCP(...)`` with settings that suit fleets.
        folder: Where the shards are kept; all actors must see it.
        shards: How many actors there are; it cannot change while a folder is in use.
        every: Batches between two checkpoints.
        gpus: Of every actor: 1 gives each a device of its own, 0.5 half of one.
        late: How late a row may be, "10 minutes", or a number where times are integers: a slice is complete when a
            row so much later has come. Without it, when its stream has a row of a later time.
        ttl: How long a stream may be silent before it is forgotten: "7 days", or a number where times are integers.
        false_alarms: False incidents that are accepted, as `undertow.Incidents` has it; None looks for none.
        dates: Whether times are dates.

    Yields:
        The offset of each batch, and a DataFrame of the slices that were complete with it: key, time, value, `mean`,
        `std`, `outlier_probability` as arrays, `status`, `incidents` as JSON, and, where labels come and go, `labels`
        by mode and place. The last one, with the offset one
        beyond the last batch, has what was still waiting. After the job itself was killed, batches since its last
        checkpoint come once more, with the same offsets and results.

    Raises:
        TypeError: An argument is of another type.
        ValueError: Settings exclude each other.
        CheckpointError: The folder holds shards of another job.

    Examples:
        >>> import undertow as ut
        >>> for offset, slices in apply(frames, key="router", time="time", modes={"src": 16, "dst": 16}, value="bytes",
        ...                             model=ut.Tracker(), folder="shards"):  # doctest: +SKIP
        ...     print(offset, len(slices))
    """
    if not all(isinstance(one, int) and one > 0 for one in (shards, every)):
        raise ValueError(f"shards and every must be integers of 1 or more, got {shards!r} and {every!r}.")
    silence = None if ttl is None else span("ttl", ttl, dates)
    delay = None if late is None else span("late", late, dates, 0)
    made = plan(key, time, modes, value, model, false_alarms=false_alarms, ttl=silence, dates=dates)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return _Job(made, place, shards, every, gpus, delay).run(batches)


class _Job:
    """The driver's side: which batches the actors may have to be given again."""

    def __init__(self, made: Plan, folder: Path, shards: int, every: int, gpus: float, delay: int | None) -> None:
        self._plan, self._every, self._count = made, every, shards
        self._start = _common(folder, shards)
        owner = ray.remote(_Owner).options(num_cpus=1, num_gpus=gpus, max_restarts=-1)
        self._actors = [
            owner.remote(made, str(folder), (shard, shards), self._start, delay, gpus) for shard in range(shards)
        ]
        for kind, each in (("CPU", 1), ("GPU", gpus)):
            if (have := ray.cluster_resources().get(kind, 0)) < each * shards:
                wanted = f"{shards} actors need {each * shards:g} {kind}s"
                _log.warning(
                    "%s, and the cluster has %g now: some wait until it grows; or give fewer shards", wanted, have
                )
        self._since: dict[int, list[Any]] = {}  # parts of the batches after the last checkpoint, by offset

    def run(self, batches: Any) -> Iterator[tuple[int, Any]]:
        """All batches that have not been learned, and the end."""
        offset = self._start + 1
        for batch in batches(offset) if callable(batches) else batches[offset:]:
            self._since[offset] = self._parted(batch)
            found = self._learned(offset)
            if (offset + 1) % self._every == 0:
                self._since.clear()
            yield offset, found
            offset += 1
        yield offset, self._learned(offset)

    def _parted(self, batch: Any) -> list[Any]:
        """The rows of each shard."""
        rows = numbered(batch, self._plan)
        names, which = np.unique(rows["ut_stream"].to_numpy(np.str_), return_inverse=True)
        number = np.array([shard_of(name, self._count) for name in names], np.int64)[which]
        return [rows[number == shard] for shard in range(self._count)]

    def _learned(self, offset: int) -> Any:
        """What all actors say about a batch, with the user's columns; beyond the last batch, about what waits."""
        asked = [self._ask(shard, offset) for shard in range(self._count)]
        found = pandas.concat([self._answer(shard, offset, one) for shard, one in enumerate(asked)], ignore_index=True)
        plan = self._plan
        if plan.dates:
            found["ut_time"] = found["ut_time"].to_numpy(np.int64).astype("datetime64[us]")
        found = found if plan.grows else found.drop(columns="labels")
        return found.rename(columns={"ut_stream": plan.key, "ut_time": plan.time, "value": plan.value})

    def _ask(self, shard: int, offset: int) -> Any:
        rows = self._since[offset][shard] if offset in self._since else None
        return self._actors[shard].step.remote(offset, rows, (offset + 1) % self._every == 0)

    def _answer(self, shard: int, offset: int, asked: Any) -> Any:
        """Of one actor, which learns again what it has lost if it was killed meanwhile, or before it was asked."""
        for _ in range(ATTEMPTS):
            try:
                return ray.get(asked)
            except (ray.exceptions.RayActorError, Behind):
                with contextlib.suppress(ray.exceptions.RayActorError):
                    reached = self._back(shard, offset)
                    for earlier in range(reached + 1, offset):
                        self._ask(shard, earlier)  # an actor works in the order in which it is asked
                asked = self._ask(shard, offset)
        return ray.get(asked)

    def _back(self, shard: int, offset: int) -> int:
        """What `_Owner.back` says, as soon as there is somebody who can say it."""
        until = clock.monotonic() + RESTART_S
        while True:
            try:
                reached: int = ray.get(self._actors[shard].back.remote(offset))
                return reached
            except ray.exceptions.ActorUnavailableError:
                if clock.monotonic() > until:
                    raise
                clock.sleep(0.1)


class _Owner:
    """One shard, in a process of its own.

    Args:
        plan: Of the job.
        folder: Of the shards.
        number: Of this one, and how many there are.
        start: The offset that all shards began with; files of later ones are those of this job.
        delay: How late a row may be.
        gpus: How much of a device it has; none: one core.
    """

    def __init__(
        self, plan: Plan, folder: str, number: tuple[int, int], start: int, delay: int | None, gpus: float
    ) -> None:
        if not gpus:
            one_thread()
        elif gpus < 1:  # else the first of several on a device takes most of its memory
            os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{0.9 * gpus:.3f}")
        self._plan, self._path, self._number, self._delay = plan, Path(folder), number, delay
        self._load(max(_offsets(self._path, *number), default=-1) if _restarted() else start)

    def _load(self, offset: int) -> None:
        """The shard as it was after this batch."""
        self._offset, self._shard = offset, Shard(self._plan)
        if offset >= 0:
            content = _file(self._path, *self._number, offset).read_bytes()
            self._shard = Shard.from_bytes(content, self._plan)

    def back(self, before: int) -> int:
        """Go back to before a batch, if that was kept and its answer lost; the last batch that was learned."""
        if self._offset >= before:
            self._load(max((one for one in _offsets(self._path, *self._number) if one < before), default=-1))
        return self._offset

    def step(self, offset: int, rows: Any, save: bool) -> Any:
        """Learn one batch; no rows at all: the end, which changes nothing that is kept."""
        if offset != self._offset + 1:
            raise Behind(f"batch {self._offset + 1} is the next one, got {offset}: give them in order.")
        if rows is None:
            return frame(Shard.from_bytes(self._shard.to_bytes(), self._plan).learn(END))
        add(self._shard, rows)
        until = None
        if self._delay is not None and len(self._shard):
            until = int(self._shard.heard.max()) - self._delay
        found = frame(self._shard.learn(until))
        self._offset = offset
        if save:
            self._save()
        return found

    def _save(self) -> None:
        """The new file, and the one before it."""
        container.write_bytes(_file(self._path, *self._number, self._offset), self._shard.to_bytes())
        for old in sorted(_offsets(self._path, *self._number))[:-KEPT]:
            _file(self._path, *self._number, old).unlink(missing_ok=True)


def _restarted() -> bool:
    """Whether this process stands in for an actor that was killed."""
    return bool(ray.get_runtime_context().was_current_actor_reconstructed)


def _file(folder: Path, shard: int, shards: int, offset: int) -> Path:
    return folder / f"shard-{shard:05}-of-{shards:05}-{offset:012}.state"


def _offsets(folder: Path, shard: int, shards: int) -> list[int]:
    """After which batches this shard was kept."""
    return [int(path.stem.rsplit("-", 1)[1]) for path in folder.glob(f"shard-{shard:05}-of-{shards:05}-*.state")]


def _common(folder: Path, shards: int) -> int:
    """The last batch after which all shards were kept; −1 where there is none. What was kept beyond it is removed."""
    other = next((path for path in folder.glob("shard-*.state") if f"-of-{shards:05}-" not in path.name), None)
    if other is not None:
        raise CheckpointError(
            f"{folder} holds {other.name}, and now there are {shards} shards: "
            "give as many as before, or another folder."
        )
    kept = [set(_offsets(folder, shard, shards)) for shard in range(shards)]
    common = max(set.intersection(*kept), default=-1)
    for shard, offsets in enumerate(kept):  # it comes again
        for offset in (one for one in offsets if one > common):
            _file(folder, shard, shards, offset).unlink()
    return common
