"""The options that say how a source is read, the same for every command that reads one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

_PANEL = "How to read the source"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


Format = Annotated[str | None, _option("--format", help="Format, if the name does not tell it: npy, csv, video, …")]
TimeAxis = Annotated[str | None, _option("--time-axis", help="Axis (number) or dimension (name) of time.")]
Select = Annotated[
    list[str] | None, _option("--select", help="Part of a mode or of time: row=10:20, src=A,B, time=2024-01..2024-03.")
]
Resize = Annotated[str | None, _option("--resize", help="A factor such as 0.5, or rows x columns such as 72x88.")]
MissingValue = Annotated[
    str | None, _option("--missing-value", help="Numbers, with commas, that mean: nothing was observed.")
]
Mask = Annotated[str | None, _option("--mask", help="File with 0 where nothing was observed.")]
Time = Annotated[str | None, _option("--time", help="Column, dimension or array of the times.")]
Modes = Annotated[str | None, _option("--modes", help="Tables: columns of labels (src,dst). Else: names of the modes.")]
Value = Annotated[str | None, _option("--value", help="Tables: column of the values.")]
Labels = Annotated[list[str] | None, _option("--labels", help="Labels of a mode: src=A,B,C or src=@file.")]
Duplicates = Annotated[str | None, _option("--duplicates", help="Tables: refuse or sum rows for the same entry.")]
Variable = Annotated[str | None, _option("--variable", help="Which of several arrays in the source.")]
Colour = Annotated[bool, _option("--colour", help="Pictures and video in colours instead of grey.")]
Size = Annotated[str | None, _option("--size", help="Width x height of raw video, 176x144.")]
Pixels = Annotated[str | None, _option("--pixels", help="Raw video: yuv420p, yuv422p, yuv444p or gray.")]
Late = Annotated[str, _option("--late", help="Slices whose time is not after those before: keep, skip or refuse.")]
Gaps = Annotated[str, _option("--gaps", help="Times without a slice: keep, fill (with empty slices) or refuse.")]
Step = Annotated[
    str | None, _option("--step", help="Distance of successive times, 5min or 1; by default the usual one.")
]
Follow = Annotated[bool, _option("--follow", help="Wait for more at the end of a file or folder that grows.")]
Idle = Annotated[float | None, _option("--idle", help="With --follow: end after so many seconds without anything new.")]

NAMES = (
    "format", "time_axis", "select", "resize", "missing_value", "mask", "time", "modes", "value", "labels",
    "duplicates", "variable", "colour", "size", "pixels", "late", "gaps", "step", "follow", "idle",
)  # fmt: skip


def reading(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `undertow.open_stream` among the parameters of a command."""
    given = {name: parameters[name] for name in NAMES if parameters.get(name) not in (None, [], False, "keep")}
    axis = given.get("time_axis")
    if isinstance(axis, str) and axis.lstrip("+-").isdigit():
        given["time_axis"] = int(axis)
    return given
