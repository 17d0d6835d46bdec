"""A workload: what is timed, and on what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from undertow.lab.recordings.files import Folder
from undertow.lab.speed.model import OneModel
from undertow.lab.speed.slices import Slices, generated
from undertow.lab.speed.subject import Subject


@dataclass(frozen=True, eq=False)
class Workload:
    """What is timed, and on what.

    Attributes:
        name: its key.
        shows: what it is there for, one phrase.
        shape: of a slice.
        window: W.
        max_rank: R, the most components of Undertow's model.
        rank: components of a generated stream; baselines are given it.
        observed: fraction of the entries that is shown.
        outliers: fraction of outliers in a generated stream.
        settings: of Undertow's model, beyond window and max_rank.
        baselines: names of those timed on the same slices.
        source: makes the slices, given the workload, how many, and the folder of the data files.
        recorded: the stream is a recording, not generated.
        make: makes what is timed, given the workload and its slices.
        large: left out unless there is a GPU, or it is asked for.
        quick: part of a quick run.
    """

    name: str
    shows: str
    shape: tuple[int, ...]
    window: int = 20
    max_rank: int = 15
    rank: int = 5
    observed: float = 1.0
    outliers: float = 0.02
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    baselines: tuple[str, ...] = ()
    source: Callable[[Workload, int, Folder], Slices] = generated
    recorded: bool = False
    make: Callable[[Workload, Slices], Subject] = OneModel
    large: bool = False
    quick: bool = True

    @property
    def kind(self) -> str:
        """The kind of stream, in words."""
        if self.recorded:
            return "recorded"
        return "synthetic full" if self.observed == 1 else "synthetic masked"
