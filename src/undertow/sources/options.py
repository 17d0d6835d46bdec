"""What the user says about a source, and how texts from a command line become values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undertow.sources.base import Label, StreamError
from undertow.sources.errors import told_in_one_sentence
from undertow.sources.following import Follow
from undertow.sources.preparation import selecting


@dataclass(frozen=True)
class Options:
    """What the user said about a source; None where nothing was said. :func:`open_stream` explains each."""

    time_axis: int | str | None = None
    time: str | None = None
    modes: tuple[str, ...] | None = None
    value: str | None = None
    labels: Mapping[str, tuple[Label, ...]] | None = None
    duplicates: str | None = None
    variable: str | None = None
    colour: bool | None = None
    size: tuple[int, int] | None = None
    pixels: str | None = None
    follow: Follow | None = None


def check_choice(name: str, chosen: str, choices: Sequence[str]) -> None:
    """One of a few words."""
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


def parse_labels(given: Any) -> dict[str, tuple[Label, ...]] | None:
    """Labels per mode; a text is a list with commas, or after an @ the name of a file with one label a line."""
    if given is None:
        return None
    made: dict[str, tuple[Label, ...]] = {}
    for mode, labels in selecting.as_mapping(given).items():
        if isinstance(labels, str) and labels.startswith("@"):
            with told_in_one_sentence(f"labels could not be read from {labels[1:]}", "name a text file"):
                made[str(mode)] = tuple(line for line in Path(labels[1:]).read_text("utf-8").splitlines() if line)
        elif isinstance(labels, str):
            made[str(mode)] = tuple(label.strip() for label in labels.split(","))
        else:
            made[str(mode)] = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        if len({str(label) for label in made[str(mode)]}) < len(made[str(mode)]) or not made[str(mode)]:
            raise StreamError(f"labels of {mode} must all be different, and at least one, got {labels!r}")
    return made


def parse_frame_size(size: Any) -> tuple[int, int] | None:
    """Width and height, also as ``176x144``."""
    if size is None:
        return None
    pieces = re.split(r"[x×,]", size) if isinstance(size, str) else size
    try:
        width, height = (int(piece) for piece in pieces)
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1:
        raise StreamError(f"size must be width and height such as 176x144, got {size!r}")
    return width, height


def parse_numbers(given: Any) -> tuple[float, ...]:
    """Numbers: one, several, or a text with commas."""
    if given is None:
        return ()
    pieces = (
        given.split(",") if isinstance(given, str) else given if isinstance(given, (Sequence, Mapping)) else [given]
    )
    try:
        return tuple(float(piece) for piece in pieces)
    except (TypeError, ValueError):
        raise StreamError(f"missing_value must be a number or several, got {given!r}") from None
