"""The options that say how a source is read, the same for every command that reads one."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from inspect import getdoc
from typing import Annotated, Any

import typer

from undertow.sources import open_stream

_ARGUMENTS = (getdoc(open_stream) or "").partition("Args:\n")[2].partition("\n\n")[0]
_HELP = {name: " ".join(text.split()) for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", _ARGUMENTS, re.M)}
"""What the docstring of ``open_stream`` says about each of its arguments."""


def _option(name: str) -> Any:
    flag = "--" + name.replace("_", "-")
    flag += "/--grey" if name == "colour" else ""
    return typer.Option(flag, help=_HELP.get(name), rich_help_panel="How to read the source")


@dataclass(frozen=True)
class ReadingOptions:
    """How a source is read: options of `undertow.open_stream` under the same names."""

    format: Annotated[str | None, _option("format")] = None
    time_axis: Annotated[str | None, _option("time_axis")] = None
    select: Annotated[list[str] | None, _option("select")] = None
    resize: Annotated[str | None, _option("resize")] = None
    missing_value: Annotated[str | None, _option("missing_value")] = None
    mask: Annotated[str | None, _option("mask")] = None
    time: Annotated[str | None, _option("time")] = None
    modes: Annotated[str | None, _option("modes")] = None
    value: Annotated[str | None, _option("value")] = None
    labels: Annotated[list[str] | None, _option("labels")] = None
    capacity: Annotated[list[str] | None, _option("capacity")] = None
    duplicates: Annotated[str | None, _option("duplicates")] = None
    variable: Annotated[str | None, _option("variable")] = None
    colour: Annotated[bool | None, _option("colour")] = None
    size: Annotated[str | None, _option("size")] = None
    pixels: Annotated[str | None, _option("pixels")] = None
    late: Annotated[str, _option("late")] = "keep"
    gaps: Annotated[str, _option("gaps")] = "keep"
    step: Annotated[str | None, _option("step")] = None
    on_bad: Annotated[str, _option("on_bad")] = "stop"

    def given(self) -> dict[str, Any]:
        """What was set, as arguments of `undertow.open_stream`."""
        found = {name: value for name, value in asdict(self).items() if value not in (None, [], "keep", "stop")}
        if not found.get("follow"):
            found.pop("follow", None)
        axis = found.get("time_axis")
        if isinstance(axis, str) and axis.lstrip("+-").isdigit():
            found["time_axis"] = int(axis)
        return found


@dataclass(frozen=True)
class FollowingOptions(ReadingOptions):
    """How a source is read that may still grow."""

    follow: Annotated[bool, _option("follow")] = False
    idle: Annotated[float | None, _option("idle")] = None
