"""What a run is asked to do: one frozen dataclass, validated in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, get_args

from undertow.incidents import FalseAlarms
from undertow.incidents.delivery import channel
from undertow.incidents.rate import DEFAULT
from undertow.runs.errors import RunError
from undertow.runs.publishing import asked
from undertow.runs.store.alerts import Format
from undertow.runs.store.layout import (
    DEFAULT_KEEP,
    FORMER_KEEPS,
    SLICE_VARIABLES,
    Layout,
    Precision,
    chunk_length,
    chunked_shape,
    distinct,
)
from undertow.runs.store.times import Times
from undertow.sources.base import Stream
from undertow.sources.capacity import LabelSlots

PICTURE_DIMS = ("row", "column", "slice")
"""Names of the modes of what has pixels."""
OnBad = Literal["stop", "skip"]
AlertsPer = Literal["entry", "region"]


@dataclass(frozen=True)
class RunOptions:
    """The options of `undertow.run`, under the same names.

    Those down to ``checkpoint_every`` decide which bytes a run writes: they are part of its identity.
    """

    keep: str | Sequence[str] = DEFAULT_KEEP
    precision: Precision = "single"
    alerts: Format | None = "csv"
    threshold: float = 0.5
    checkpoint_every: int | None = None
    checkpoint_seconds: float = 30.0
    limit: int | None = None
    resume: bool = False
    overwrite: bool = False
    new_data: bool = False
    on_bad: OnBad = "stop"
    spreadsheet_safe: bool = False
    false_alarms: str | float | None = DEFAULT
    slice_seconds: float | None = None
    deliver: Sequence[str] = ()
    publish: str | None = None
    alerts_per: AlertsPer | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", parse_keep(self.keep))
        formats = get_args(Format)
        for valid, name, rule in (
            (self.precision in get_args(Precision), "precision", f"one of {', '.join(get_args(Precision))}"),
            (self.alerts is None or self.alerts in formats, "alerts", f"one of {', '.join(formats)} or none"),
            (0 < self.threshold <= 1, "threshold", "a probability above 0 and at most 1"),
            (self.checkpoint_every is None or self.checkpoint_every >= 1, "checkpoint_every", "at least 1 slice"),
            (self.checkpoint_seconds > 0, "checkpoint_seconds", "more than 0"),
            (self.limit is None or self.limit >= 1, "limit", "at least 1 slice"),
            (self.resume or not self.new_data, "new_data", "used with resume (--resume --new-data)"),
            (self.on_bad in get_args(OnBad), "on_bad", f"one of {', '.join(get_args(OnBad))}"),
            (self.alerts_per in (None, *get_args(AlertsPer)), "alerts_per", f"one of {', '.join(get_args(AlertsPer))}"),
        ):
            if not valid:
                raise RunError(f"{name} must be {rule}, got {getattr(self, name)!r}")

        if self.false_alarms is not None:
            try:
                FalseAlarms.parse(self.false_alarms)
            except ValueError as error:
                raise RunError(f"{error}, or none") from None
        if self.publish is not None:
            parse_keep(asked(self.publish))
        for address in self.deliver:
            try:
                channel(address)
            except ValueError as error:
                raise RunError(str(error)) from None
        if self.deliver and self.false_alarms is None:
            raise RunError("deliver is for incidents: leave it out, or give false_alarms a rate such as '1/day'")
        if self.slice_seconds is not None and not self.slice_seconds > 0:
            raise RunError(f"slice_seconds must be the seconds between slices, above 0, got {self.slice_seconds!r}")

    def layout(
        self,
        stream: Stream,
        times: Times,
        begun: Mapping[str, Any] | None = None,
        predictors: Sequence[str] = (),
    ) -> Layout:
        """Of the store for this stream.

        Args:
            stream: The source.
            times: Kind of its times.
            begun: Identity of the layout where there is a store already.
            predictors: Of the model, if it is a tracker and there is no store yet.
        """
        time_name = distinct([stream.time_name])[0]
        if begun is not None and begun["time_name"] == stream.time_name:
            time_name = stream.time_name  # earlier versions did not rename it
        keep = tuple(self.keep)
        if begun is not None and keep == DEFAULT_KEEP and tuple(begun["keep"]) in FORMER_KEEPS:
            keep = tuple(begun["keep"])
        regions = pictures(stream)
        if self.alerts_per == "region" and not regions:
            raise RunError(
                f"alerts_per region is for pictures, which have rows and columns, got {', '.join(stream.dims)}: "
                "leave it out, or use entry"
            )
        if self.alerts is None or self.alerts_per == "entry":
            regions = 0
        if begun is not None and self.alerts_per is None:
            regions = begun.get("region_modes", 0)
        return Layout(
            shape=tuple(stream.shape),
            dims=distinct(stream.dims, time_name),
            labels=tuple(one if one is None or isinstance(one, LabelSlots) else tuple(one) for one in stream.labels),
            time_name=time_name,
            times=times,
            keep=keep,
            precision=self.precision,
            chunk=chunk_length(chunked_shape(stream.shape, stream.labels), self.precision, self.checkpoint_every),
            checksums=begun is None or begun.get("checksums", False),
            predictors=tuple(predictors if begun is None else begun.get("predictors", ())),
            region_modes=regions,
            units=getattr(stream, "attributes", {}).get("units", ""),
        )


def pictures(stream: Stream) -> int:
    """The number of modes that are places in a picture or a volume; 0 where slices are neither."""
    modes = zip(stream.dims, stream.labels, strict=True)
    places = len(list(takewhile(lambda mode: mode[0] in PICTURE_DIMS and not mode[1], modes)))
    return places if places > 1 else 0


def parse_keep(keep: str | Sequence[str]) -> tuple[str, ...]:
    """The arrays to keep, in the order of `SLICE_VARIABLES`; "none" keeps the values per slice alone.

    Example:
        >>> parse_keep("data, mean")
        ('mean', 'data')
    """
    names = [name.strip() for name in keep.split(",")] if isinstance(keep, str) else list(keep)
    wanted = {name for name in names if name and name != "none"}
    for name in sorted(wanted - set(SLICE_VARIABLES)):
        raise RunError(f"keep must be among {', '.join(SLICE_VARIABLES)} or none, got {name!r}")
    return tuple(name for name in SLICE_VARIABLES if name in wanted)
