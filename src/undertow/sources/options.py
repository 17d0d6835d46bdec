"""The options of ``open_stream`` as two frozen records: how to read a source, and what to do with its slices."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from undertow.sources.base import Label, StreamError
from undertow.sources.capacity import Capacity
from undertow.sources.errors import one_sentence
from undertow.sources.following import Follow


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read; None where the user gave nothing. :func:`open_stream` explains each option.

    ``follow`` holds the options ``follow``, ``idle`` and ``poll``.
    """

    format: str | None = None
    time_axis: int | str | None = None
    time: str | None = None
    modes: tuple[str, ...] | None = None
    value: str | None = None
    labels: Mapping[str, tuple[Label, ...]] | None = None
    capacity: Mapping[str, Capacity] | None = None
    duplicates: str | None = None
    variable: str | None = None
    colour: bool | None = None
    size: tuple[int, int] | None = None
    pixels: str | None = None
    follow: Follow | None = None
    on_bad: str = "stop"

    def __post_init__(self) -> None:
        _check_choice("on_bad", self.on_bad, ("stop", "skip"))
        _check_choice("duplicates", self.duplicates or "refuse", ("refuse", "sum", "mean", "last"))

    def canonical(self) -> dict[str, str]:
        """What identifies this reading, as texts; ``format`` shows in the source, ``follow`` changes no slice."""
        never = ("format", "follow", "on_bad", *(("capacity",) if self.capacity is None else ()))
        names = (each.name for each in fields(self) if each.name not in never)
        return {name: str(getattr(self, name)) for name in names}

    def remedied(self) -> SourceOptions:
        """Without the options that only say what happens to bad rows: a run may be resumed with others."""
        return replace(self, duplicates=None, labels=None)

    def check_known(self, what: str, known: frozenset[str]) -> None:
        """Refuse an option that would have no effect; modes and labels can be named in every format."""
        for each in fields(self):
            known_everywhere = each.name in ("format", "modes", "labels", "on_bad")
            if getattr(self, each.name) is not None and not known_everywhere and each.name not in known:
                raise StreamError(f"{each.name} has no meaning for {what}: leave it out")


@dataclass(frozen=True)
class Preparation:
    """What is done to each slice, whatever its format; :func:`open_stream` explains each option."""

    select: Mapping[str | int, Any] = field(default_factory=dict)
    resize: Any = None
    missing_value: tuple[float, ...] = ()
    mask: Any = field(default=None, compare=False)
    late: str = "keep"
    gaps: str = "keep"
    step: Any = None

    def __post_init__(self) -> None:
        _check_choice("late", self.late, ("keep", "skip", "refuse"))
        _check_choice("gaps", self.gaps, ("keep", "fill", "refuse"))

    def canonical(self) -> dict[str, str]:
        """What identifies this preparation, as texts; the step counts as the stream comes to know it."""
        return {
            "select": str(self.select),
            "resize": str(self.resize),
            "missing": str(self.missing_value),
            "mask": str(self._mask_identity()),
            "late": self.late,
            "gaps": self.gaps,
        }

    def remedied(self) -> Preparation:
        """Without the options that only say what happens to bad slices: a run may be resumed with others."""
        finite = tuple(number for number in self.missing_value if math.isfinite(number))
        return replace(self, missing_value=finite, late="keep", gaps="keep")

    def remedies(self) -> dict[str, str]:
        """The options that only say what happens to bad slices, as texts."""
        infinite = tuple(number for number in self.missing_value if not math.isfinite(number))
        return {"late": self.late, "gaps": self.gaps, "missing_value": str(infinite)}

    def _mask_identity(self) -> str | None:
        if self.mask is None:
            return None
        if isinstance(self.mask, (str, os.PathLike)):
            path = Path(self.mask)
            return f"{path.name} {first_bytes(path, 2**20) if path.is_file() else ''}"
        return hashlib.sha256(np.ascontiguousarray(self.mask).tobytes()).hexdigest()


def first_bytes(path: Path, count: int = 4096) -> str:
    """Digest of the beginning of a file, which stays the same while the file grows."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(count)).hexdigest()


def _check_choice(name: str, chosen: str, choices: Sequence[str]) -> None:
    if chosen not in choices:
        raise StreamError(f"{name} must be one of {', '.join(choices)}, got {chosen!r}")


def parse_names(option: str, given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names, also as one text with commas."""
    if given is None:
        return None
    names = tuple(str(name).strip() for name in (given.split(",") if isinstance(given, str) else given))
    if not names or not all(names):
        raise StreamError(f"{option} must be names separated by commas, got {given!r}")
    return names


def parse_parts(option: str, given: Any) -> dict[str | int, Any]:
    """Something per mode: a mapping, or texts ``mode=part`` from a command line."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    parts: dict[str | int, Any] = {}
    for text in [given] if isinstance(given, str) else given:
        key, sign, part = str(text).partition("=")
        if not sign or not key.strip() or not part.strip():
            raise StreamError(f"{option} must have the form mode=0:10 or mode=A,B, got {text!r}")
        parts[key.strip()] = part.strip()
    return parts


def parse_labels(given: Any) -> dict[str, tuple[Label, ...]] | None:
    """Labels per mode; a text is a list with commas, or after an @ the name of a file with one label a line."""
    if given is None:
        return None
    parsed: dict[str, tuple[Label, ...]] = {}
    for mode, labels in parse_parts("labels", given).items():
        if isinstance(labels, str) and labels.startswith("@"):
            with one_sentence(f"labels could not be read from {labels[1:]}", "name a text file"):
                made: tuple[Label, ...] = tuple(filter(None, Path(labels[1:]).read_text("utf-8").splitlines()))
        elif isinstance(labels, str):
            made = tuple(label.strip() for label in labels.split(","))
        else:
            made = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        if len({str(label) for label in made}) < len(made) or not made:
            raise StreamError(f"labels of {mode} must all be different, and at least one, got {labels!r}")
        parsed[str(mode)] = made
    return parsed


def parse_frame_size(size: Any) -> tuple[int, int] | None:
    """Width and height, also as ``176x144``."""
    if size is None:
        return None
    try:
        width, height = (int(part) for part in (re.split(r"[x×,]", size) if isinstance(size, str) else size))
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1:
        raise StreamError(f"size must be width and height such as 176x144, got {size!r}")
    return width, height


def parse_numbers(option: str, given: Any) -> tuple[float, ...]:
    """Numbers: one, several, or a text with commas."""
    if given is None:
        return ()
    several = given.split(",") if isinstance(given, str) else given
    try:
        return tuple(float(number) for number in (several if isinstance(several, (Sequence, Mapping)) else [several]))
    except (TypeError, ValueError):
        raise StreamError(f"{option} must be a number or several, got {given!r}") from None
