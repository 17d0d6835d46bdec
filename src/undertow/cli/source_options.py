"""The options that say how a source is read, the same for every command that reads one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

_PANEL = "How to read the source"


def _option(name: str, help: str) -> Any:
    return typer.Option(name, help=help, rich_help_panel=_PANEL)


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read."""

    format: Annotated[str | None, _option("--format", "Format, if the name does not tell it: npy, csv, video, …")] = (
        None
    )
    time_axis: Annotated[str | None, _option("--time-axis", "Axis (number) or dimension (name) of time.")] = None
    select: Annotated[
        list[str] | None, _option("--select", "Part of a mode or of time: row=10:20, src=A,B, time=2024-01..2024-03.")
    ] = None
    resize: Annotated[str | None, _option("--resize", "A factor such as 0.5, or rows x columns such as 72x88.")] = None
    missing_value: Annotated[
        str | None, _option("--missing-value", "Numbers, with commas, that mean: nothing was observed.")
    ] = None
    mask: Annotated[str | None, _option("--mask", "File with 0 where nothing was observed.")] = None
    time: Annotated[str | None, _option("--time", "Column, dimension or array of the times.")] = None
    modes: Annotated[
        str | None, _option("--modes", "Tables: columns of labels (src,dst). Else: names of the modes.")
    ] = None
    value: Annotated[str | None, _option("--value", "Tables: column of the values.")] = None
    labels: Annotated[list[str] | None, _option("--labels", "Labels of a mode: src=A,B,C or src=@file.")] = None
    duplicates: Annotated[str | None, _option("--duplicates", "Tables: refuse or sum rows for the same entry.")] = None
    variable: Annotated[str | None, _option("--variable", "Which of several arrays in the source.")] = None
    colour: Annotated[bool, _option("--colour", "Pictures and video in colours instead of grey.")] = False
    size: Annotated[str | None, _option("--size", "Width x height of raw video, 176x144.")] = None
    pixels: Annotated[str | None, _option("--pixels", "Raw video: yuv420p, yuv422p, yuv444p or gray.")] = None
    late: Annotated[str, _option("--late", "Slices whose time is not after those before: keep, skip or refuse.")] = (
        "keep"
    )
    gaps: Annotated[str, _option("--gaps", "Times without a slice: keep, fill (with empty slices) or refuse.")] = "keep"
    step: Annotated[
        str | None, _option("--step", "Distance of successive times, 5min or 1; by default the usual one.")
    ] = None

    def given(self) -> dict[str, Any]:
        """What was set, as arguments of `undertow.open_stream`."""
        found = {name: value for name, value in asdict(self).items() if value not in (None, [], False, "keep")}
        axis = found.get("time_axis")
        if isinstance(axis, str) and axis.lstrip("+-").isdigit():
            found["time_axis"] = int(axis)
        return found


@dataclass(frozen=True)
class FollowOptions(SourceOptions):
    """How a source is read that may still grow."""

    follow: Annotated[bool, _option("--follow", "Wait for more at the end of a file or folder that grows.")] = False
    idle: Annotated[
        float | None, _option("--idle", "With --follow: end after this many seconds without anything new.")
    ] = None
