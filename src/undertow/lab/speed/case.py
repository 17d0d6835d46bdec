"""One case of the benchmark: what is timed, and on what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from undertow.lab.recordings.files import Folder
from undertow.lab.speed.model import OneModel
from undertow.lab.speed.stream import Stream, generated
from undertow.lab.speed.subject import Subject


@dataclass(frozen=True, eq=False)
class Case:
    """What is timed, and on what.

    name      its key
    shows     what it is there for, one phrase
    shape     of a slice
    window    W
    max_rank  R, the most components of our model
    rank      components of a generated stream; rivals are told it
    observed  share of the entries that is shown
    outliers  share of outliers in a generated stream
    settings  of our model, beyond window and max_rank
    rivals    names of baselines timed on the same slices
    source    makes the stream, given the case, how many slices, and the folder of the data files
    recorded  the stream is a recording, not generated
    make      makes what is timed, given the case and its stream; anything that can `feed`
    large     left out unless there is a GPU, or it is asked for
    quick     part of a quick run
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
    rivals: tuple[str, ...] = ()
    source: Callable[[Case, int, Folder], Stream] = generated
    recorded: bool = False
    make: Callable[[Case, Stream], Subject] = OneModel.of
    large: bool = False
    quick: bool = True

    @property
    def kind(self) -> str:
        """The kind of stream, in words."""
        if self.recorded:
            return "recorded"
        return "synthetic full" if self.observed == 1 else "synthetic masked"
