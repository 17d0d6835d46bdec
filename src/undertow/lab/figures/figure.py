"""What a figure is: panels, each one case with the methods on it, and where it differs from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from undertow.lab.cases.case import Case, Condition
from undertow.lab.cases.registry import DATASETS
from undertow.lab.methods import ALL_METHODS, NAIVE, Method, Settings
from undertow.lab.recordings.files import Folder

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Panel:
    """One case of a figure.

    Attributes:
        title: above it.
        dataset: key of the registry of data sets.
        condition: what is shown and corrupted.
        methods: names; the naive ones are always added.
        shows: curve that is drawn, a name in `SCORES`; several panels may share a case.
        paper: settings of the paper's model where the paper names them.
        size: changes to the data set's size in a full run.
        quick: changes to it in a quick run.
        frames: slices shown as pictures, from 0; in a quick run those of them that it reaches, and its last.
    """

    title: str
    dataset: str
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
    def drawn(self) -> list[Method]:
        """All methods, in the order of the picture."""
        return [ALL_METHODS[name] for name in (*self.methods, *NAIVE)]

    def case(self, seed: int, quick: bool, folder: Folder) -> Case:
        """The case behind the panel."""
        changes = self.quick if quick else self.size
        return DATASETS[self.dataset].case(self.condition, seed, quick, folder, **changes)

    def settings(self, case: Case, method: Method) -> Settings:
        """A method's own choice; for the paper's model, what the paper says."""
        own = method.settings(case)
        return {**own, **self.paper} if method.name == "undertow_paper" else own


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper.

    Attributes:
        name: on the command line.
        title: on the page.
        caption: what one sees.
        differs: where the protocol is not the paper's or its authors' scripts', and why.
        kind: "curves" over time, or "pictures".
        panels: its cases.
        shortened: what a quick run leaves out.
        seeds: unless the user says otherwise; recordings in full size are run once.
    """

    name: str
    title: str
    caption: str
    differs: str
    kind: Literal["curves", "pictures"]
    panels: tuple[Panel, ...]
    shortened: str
    seeds: int = 3
