"""The streams of the scoreboard and of the paper's figures. A new stream is one entry of `STREAMS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.accuracy.case import Case, Condition, from_recording, from_synthetic
from undertow.lab.accuracy.contest import Contest
from undertow.lab.recordings import abilene, airport, intel_lab, lobby, pincat, sunnybrook
from undertow.lab.recordings.files import Folder
from undertow.lab.synthetic.streams import SyntheticStream, authors, drifting, traffic


@dataclass(frozen=True)
class Size:
    """How much of a stream is used.

    slices   so many from its start
    burn_in  of which so many are not judged
    stride   every so manieth row and column of a picture
    crop     then only the middle of so many rows and columns, and generated slices no longer than that; None for all
    """

    slices: int = 100
    burn_in: int = 20
    stride: int = 1
    crop: int | None = None


Make = Callable[[Condition, int, Size, Folder], Case]


@dataclass(frozen=True)
class Stream:
    """One stream, under several conditions.

    name        its key
    title       for people
    rank        offered to every rival: the true one where there is one
    make        (condition, seed, size, folder) → case
    conditions  rows of the scoreboard
    full        how much of it the scoreboard uses
    quick       how much of it `--quick` uses
    in_quick    conditions of `--quick`; none: left out there
    period      season, for methods that want one
    recorded    real data, needs a file
    """

    name: str
    title: str
    rank: int
    make: Make
    conditions: tuple[Condition, ...]
    full: Size = Size()
    quick: Size = Size(slices=40, burn_in=15)
    in_quick: tuple[Condition, ...] = ()
    period: int | None = None
    recorded: bool = False

    def contest(
        self, condition: Condition, seed: int, quick: bool = False, folder: Folder = None, **changes: Any
    ) -> Contest:
        """The contest on this stream; `changes` replace parts of its size."""
        size = replace(self.quick if quick else self.full, **changes)
        identity = {"stream": self.name, "condition": asdict(condition), "seed": seed, "size": asdict(size)}
        return Contest(identity, lambda: self.make(condition, seed, size, folder), self.rank, self.period)


def _synthetic(generate: Callable[..., SyntheticStream], shape: tuple[int, ...], rank: int) -> Make:
    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Case:
        stream = generate(
            shape if size.crop is None else tuple(min(side, size.crop) for side in shape),
            rank,
            slices=size.slices,
            observed=condition.observed,
            outlier_fraction=condition.outliers,
            seed=seed,
        )
        return from_synthetic(stream, size.burn_in)

    return make


def _traffic(condition: Condition, seed: int, size: Size, folder: Folder) -> Case:
    stream = traffic(
        slices=size.slices,
        slices_per_day=_TRAFFIC_DAY,
        observed=condition.observed,
        anomaly_fraction=condition.outliers,
        seed=seed,
    )
    return from_synthetic(stream, size.burn_in)


def _matrices(load: Callable[[Folder], Any]) -> Make:
    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Case:
        recording = load(folder)
        faults = getattr(recording, "impossible", None)
        return from_recording(
            recording.values[: size.slices],
            condition,
            seed,
            size.burn_in,
            faults=None if faults is None else faults[: size.slices],
        )

    return make


def _film(load: Callable[[Folder], Any]) -> Make:
    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Case:
        recording = load(folder)
        frames = getattr(recording, "foreground_frames", None)
        kept: list[int] = []
        foreground = None
        if frames is not None:
            kept = [place for place, t in enumerate(frames) if size.burn_in <= t < size.slices]
            foreground = cut(recording.foreground[kept], size)
        return from_recording(
            cut(recording.values[: size.slices], size),
            condition,
            seed,
            size.burn_in,
            pictures=True,
            foreground_frames=() if frames is None else tuple(int(frames[place]) for place in kept),
            foreground=foreground,
        )

    return make


def cut(film: NDArray[Any], size: Size) -> NDArray[Any]:
    """A film (T, rows, columns, …) at every stride-th pixel, then its middle."""
    thinned = film[:, :: size.stride, :: size.stride]
    if size.crop is None:
        return np.ascontiguousarray(thinned)
    rows, columns = (max(0, (length - size.crop) // 2) for length in thinned.shape[1:3])
    return np.ascontiguousarray(thinned[:, rows : rows + size.crop, columns : columns + size.crop])


_TRAFFIC_DAY = 24
_FULL, _HALF, _SPARSE = Condition(1.0), Condition(0.5), Condition(0.15)
_FULL_BAD, _HALF_BAD, _SPARSE_BAD = Condition(1.0, 0.02), Condition(0.5, 0.02), Condition(0.15, 0.02)
_SYNTHETIC = (_FULL, _FULL_BAD, _HALF_BAD, _SPARSE, _SPARSE_BAD)
_PICTURE = (_FULL_BAD, _HALF, _HALF_BAD, _SPARSE, _SPARSE_BAD)
_SEVERE = Condition(0.1, 0.1)

_ALL = (
    Stream(
        "drifting",
        "drifting factors, rank 5",
        5,
        _synthetic(drifting, (40, 40), 5),
        _SYNTHETIC,
        in_quick=(_FULL_BAD, _SPARSE_BAD),
    ),
    Stream(
        "authors",
        "authors' generator, rank 5",
        5,
        _synthetic(authors, (40, 40), 5),
        _SYNTHETIC,
        in_quick=(_SPARSE_BAD,),
    ),
    Stream(
        "drifting_rank10",
        "drifting factors, rank 10",
        10,
        _synthetic(drifting, (50, 50), 10),
        (_SEVERE, _HALF_BAD),
    ),
    Stream(
        "authors_rank10",
        "authors' generator, rank 10",
        10,
        _synthetic(authors, (50, 50), 10),
        (_SEVERE,),
    ),
    Stream(
        "drifting_3way",
        "drifting factors, rank 4",
        4,
        _synthetic(drifting, (20, 20, 10), 4),
        (_FULL_BAD, Condition(0.3, 0.05), _SPARSE),
    ),
    Stream(
        "traffic",
        "generated traffic",
        5,
        _traffic,
        (_FULL_BAD, _HALF, _HALF_BAD, _SPARSE_BAD),
        full=Size(slices=240, burn_in=72),
        period=_TRAFFIC_DAY,
    ),
    Stream(
        "abilene",
        "Abilene traffic",
        15,
        _matrices(abilene.load),
        (_FULL, _FULL_BAD, _HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=1152, burn_in=864),
        quick=Size(slices=60, burn_in=20),
        in_quick=(_HALF,),
        period=abilene.SLICES_PER_DAY,
        recorded=True,
    ),
    Stream(
        "intel_lab",
        "Intel lab sensors",
        4,
        _matrices(intel_lab.load),
        (_FULL, _HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=1008, burn_in=432),
        quick=Size(slices=60, burn_in=20),
        period=intel_lab.SLICES_PER_DAY,
        recorded=True,
    ),
    Stream(
        "airport",
        "airport hall video",
        15,
        _film(airport.load),
        _PICTURE,
        full=Size(slices=60, burn_in=20, stride=2),
        quick=Size(slices=40, burn_in=15, stride=3, crop=40),
        in_quick=(_SPARSE,),
        recorded=True,
    ),
    Stream(
        "lobby",
        "lobby video",
        15,
        _film(lobby.load),
        (_FULL, _HALF),
        full=Size(slices=330, burn_in=20, stride=2),
        quick=Size(slices=60, burn_in=20, stride=3),
        recorded=True,
    ),
    Stream(
        "pincat",
        "PINCAT heart MRI",
        15,
        _film(pincat.load),
        (_HALF, _SPARSE, _SPARSE_BAD),
        full=Size(slices=50, burn_in=20, stride=2),
        quick=Size(slices=40, burn_in=15, stride=2, crop=40),
        recorded=True,
    ),
    Stream(
        "sunnybrook",
        "Sunnybrook heart MRI",
        30,
        _film(lambda folder: sunnybrook.load(folder, beats=2)),
        (_HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=40, burn_in=20, stride=2),
        quick=Size(slices=30, burn_in=10, stride=3, crop=40),
        recorded=True,
    ),
)

STREAMS: Mapping[str, Stream] = {stream.name: stream for stream in _ALL}


def chosen(names: str | None) -> list[Stream]:
    """The streams of a comma-separated list; without one, all. An unknown name is answered with the known ones."""
    wanted = list(STREAMS) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in STREAMS]
    if unknown or not wanted:
        raise ValueError(f"unknown stream {', '.join(unknown) or '(none)'}: choose from {', '.join(STREAMS)}")
    return [STREAMS[name] for name in dict.fromkeys(wanted)]
