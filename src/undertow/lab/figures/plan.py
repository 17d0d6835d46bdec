"""What a figure is: panels, each one contest with the methods in it, and where it differs from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from undertow.lab.accuracy.case import Condition
from undertow.lab.accuracy.contenders import CONTENDERS, Contender, Settings
from undertow.lab.accuracy.contest import Contest
from undertow.lab.accuracy.streams import STREAMS
from undertow.lab.recordings.files import Folder

NAIVE = ("last_value", "moving_mean", "running_median")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Panel:
    """One contest of a figure.

    title      above it
    stream     key of the registry of streams
    condition  what is shown and corrupted
    methods    who takes part; the naive ones always do
    shows      curve that is drawn, by its name in the judge's figures; several panels may share a contest
    paper      settings of the paper's model where the paper names them
    size       changes to the stream's size in a full run
    quick      changes to it in a quick run
    frames     slices shown as pictures, from 0; in a quick run those of them that it reaches, and its last
    """

    title: str
    stream: str
    condition: Condition
    methods: tuple[str, ...]
    shows: str
    paper: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    size: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    quick: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    frames: tuple[int, ...] = ()

    def frames_of(self, quick: bool) -> tuple[int, ...]:
        """The slices shown as pictures."""
        slices = int(self.quick.get("slices", max(self.frames, default=0) + 1)) if quick else None
        return tuple(dict.fromkeys(t if slices is None else min(t, slices - 1) for t in self.frames))

    @property
    def contenders(self) -> list[Contender]:
        """Everybody, in the order of the picture."""
        return [CONTENDERS[name] for name in (*self.methods, *NAIVE)]

    def contest(self, seed: int, quick: bool, folder: Folder) -> Contest:
        """The contest behind the panel."""
        changes = self.quick if quick else self.size
        return STREAMS[self.stream].contest(self.condition, seed, quick, folder, **changes)

    def settings(self, contest: Contest, contender: Contender) -> Settings:
        """A contender's own choice; for the paper's model, what the paper says."""
        own = contest.own_settings(contender)
        return {**own, **self.paper} if contender.name == "undertow_paper" else own


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper.

    name       on the command line
    title      on the page
    caption    what one sees
    differs    where the protocol is not the paper's or its authors' scripts', and why
    kind       "curves" over time, or "pictures"
    panels     its contests
    shortened  what a quick run leaves out
    seeds      unless the user says otherwise; recordings in full size are run once
    """

    name: str
    title: str
    caption: str
    differs: str
    kind: Literal["curves", "pictures"]
    panels: tuple[Panel, ...]
    shortened: str
    seeds: int = 3
