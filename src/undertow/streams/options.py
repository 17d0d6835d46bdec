"""The options of a stream that a format itself has to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from undertow.streams.following import Follow
from undertow.streams.stream import Label


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
