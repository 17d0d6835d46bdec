"""How much a fleet of streams takes: state bytes and processor time of each, measured; and a simulation of many shards.

What is measured: a fleet of n streams takes a + b · n seconds of processor time for one slice of each, and c bytes of
state per stream. What is simulated: every stream lies on one shard and sends a slice once a period, at a moment of its
own; a shard, which has one core, takes together what has come since it was last free, so batches grow with the load.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable

BINS = 2000
"""Moments of a period at which slices arrive."""
PERIODS = 5
"""Periods that are simulated; the first is left out of the answer."""


@dataclass(frozen=True)
class Costs:
    """What streams cost.

    Attributes:
        fixed: a, seconds of processor time of a batch, however small.
        each: b, seconds for every slice in it.
        state: c, bytes of a stream's state.
    """

    fixed: float
    each: float
    state: float

    @classmethod
    def fitted(cls, members: Sequence[float], seconds: Sequence[float], state: Sequence[float]) -> Costs:
        """By least squares of relative errors; neither a nor b is below 0."""
        size, took = np.asarray(members, float), np.asarray(seconds, float)
        if len(size) == 1:
            return cls(0.0, float(took[0] / size[0]), float(state[0]))
        design = np.stack([1 / took, size / took], axis=1)
        fixed, each = np.linalg.lstsq(design, np.ones(len(size)), rcond=None)[0]
        if fixed < 0:
            fixed, each = 0.0, float((size / took).sum() / ((size / took) ** 2).sum())
        if each < 0:
            fixed, each = float(took.mean()), 0.0
        return cls(float(fixed), float(each), float(state[-1]))


@dataclass(frozen=True)
class Simulated:
    """What many shards do.

    Attributes:
        largest: Streams on the fullest shard.
        busy: Fraction of time that the busiest shard works; 1 is too much.
        median: Seconds from the arrival of a slice to its result, over all slices.
        late: The same, 99 of 100 are quicker.
        batch: Slices that are taken together, on average.
        cores: Of all shards together, on average.
        state: Bytes of the fullest shard's state.
    """

    largest: int
    busy: float
    median: float
    late: float
    batch: float
    cores: float
    state: float


def simulated(costs: Costs, streams: int, shards: int, period: float, trigger: float, seed: int) -> Simulated:
    """Simulate shards that each have one core.

    Args:
        costs: Of a stream.
        streams: In all.
        shards: Among which they are spread by a hash of their names.
        period: Seconds between slices of a stream.
        trigger: Seconds that a shard waits at least between two batches.
        seed: Of the hash and of the moments.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(streams, np.full(shards, 1 / shards))
    waited, worked, batches = [], np.zeros(shards), 0
    for shard, size in enumerate(sizes):
        counts = rng.multinomial(size, np.full(BINS, 1 / BINS))
        delays, busy, number = _shard(counts, costs, period, trigger)
        waited.append(delays)
        worked[shard], batches = busy, batches + number
    delays = np.concatenate([one[:, 0] for one in waited])
    weights = np.concatenate([one[:, 1] for one in waited])
    order = np.argsort(delays)
    share = np.cumsum(weights[order]) / weights.sum()
    middle, late = (float(delays[order][np.searchsorted(share, part)]) for part in (0.5, 0.99))
    done = streams * (PERIODS - 1)
    largest = int(sizes.max())
    return Simulated(
        largest,
        float(worked.max()),
        middle,
        late,
        done / max(batches, 1),
        float(worked.sum()),
        largest * costs.state,
    )


def _shard(counts: NDArray[Any], costs: Costs, period: float, trigger: float) -> tuple[NDArray[Any], float, int]:
    """One shard: delays of slices with their numbers, the fraction of time that it worked, and batches."""
    times = (np.arange(BINS * PERIODS) + 0.5) * period / BINS
    numbers = np.tile(counts, PERIODS)
    begin, now, next_one = period, 0.0, 0
    delays, worked, batches = [], 0.0, 0
    while next_one < len(times):
        now = max(now, times[next_one])
        last = int(np.searchsorted(times, now, side="right"))
        took = costs.fixed + costs.each * int(numbers[next_one:last].sum())
        end = now + took
        if now >= begin:
            delays.append(np.stack([end - times[next_one:last], numbers[next_one:last]], axis=1))
            worked, batches = worked + took, batches + 1
        next_one, now = last, max(end, now + trigger)
    whole = np.concatenate(delays) if delays else np.zeros((0, 2))
    return whole, worked / max(now - begin, period), batches


def measured(
    kind: str, shape: tuple[int, ...], members: Sequence[int], slices: int, settings: dict[str, Any], reporter: Reporter
) -> tuple[list[dict[str, Any]], Costs]:
    """Fleets of several sizes, warm: processor seconds of a slice of every stream, and bytes of state.

    Args:
        kind: "cp" or "tracker".
        shape: Of a slice.
        members: Sizes of the fleets.
        slices: That are timed, after as many that are not.
        settings: Of the models.
        reporter: Progress.
    """
    import undertow as ut

    reporter.begin(len(members))
    rows = []
    for count in members:
        reporter.start(f"{count} streams", 2 * slices)
        rng = np.random.default_rng(count)
        fleet = ut.Fleet(count, shape, model=kind, **settings)
        left, right = (rng.normal(size=(count, size, 2)) for size in (shape[0], int(np.prod(shape[1:]))))
        seconds = []
        for _ in range(2 * slices):
            x = np.einsum("nir,njr,nr->nij", left, right, rng.normal(size=(count, 2))).reshape(count, *shape)
            x += 0.1 * rng.normal(size=x.shape)
            x[rng.random(x.shape) < 0.1] = np.nan
            begin = time.process_time()
            result = fleet.update(x)
            np.asarray(result.mean), np.asarray(result.std), np.asarray(result.outlier_probability)
            seconds.append(time.process_time() - begin)
            reporter.tick()
        reporter.done()
        rows.append(
            {
                "members": count,
                "seconds": float(np.median(seconds[slices:])),
                "bytes": len(fleet.to_bytes()) / count,
                "alone": len(fleet.extract(0).to_bytes()),
            }
        )
    costs = Costs.fitted(
        [row["members"] for row in rows], [row["seconds"] for row in rows], [row["bytes"] for row in rows]
    )
    return rows, costs


def tables(
    rows: Sequence[dict[str, Any]],
    costs: Costs,
    streams: int,
    shards: Sequence[int],
    period: float,
    trigger: float,
    seed: int,
) -> tuple[list[StudyTable], list[dict[str, Any]]]:
    """What was measured, and what follows for many streams."""
    one = StudyTable(
        f"Measured: a batch takes {1e3 * costs.fixed:.2f} ms + {1e6 * costs.each:.0f} µs per slice of one core",
        ("streams", "CPU of a slice of each", "per stream", "state of a stream", "alone"),
        [
            (
                str(row["members"]),
                f"{1e3 * row['seconds']:.2f} ms",
                f"{1e6 * row['seconds'] / row['members']:.0f} µs",
                f"{row['bytes'] / 1024:.1f} KiB",
                f"{row['alone'] / 1024:.1f} KiB",
            )
            for row in rows
        ],
    )
    found = [(number, simulated(costs, streams, number, period, trigger, seed)) for number in shards]
    title = f"Simulated: {streams:,} streams, a slice of each every {period:g} s, batches every {trigger:g} s at most"
    headings = ("shards", "streams on the fullest", "its state", "busiest", "cores", "batch", "median delay", "99 %")
    two = StudyTable(
        title,
        headings,
        [
            (
                str(number),
                f"{what.largest:,}",
                f"{what.state / 2**20:,.0f} MiB",
                f"{what.busy:.0%}" if what.busy < 0.995 else "too much",
                f"{what.cores:.1f}",
                f"{what.batch:.0f}",
                f"{what.median:.2f} s",
                f"{what.late:.2f} s",
            )
            for number, what in found
        ],
    )
    numbers = [{"shards": number, **vars(what)} for number, what in found]
    return [one, two], numbers
