"""Answers and requests as OpenAPI documents them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from undertow.service.spec import LABEL_LENGTH

Text = Annotated[str, Field(max_length=LABEL_LENGTH)]
Nested = list[Any]


class Error(BaseModel):
    """Why a request was refused."""

    error: str


class NewStream(BaseModel):
    """What a stream is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=12)]
    dims: list[Text] | None = None
    labels: list[list[Text | None] | None] | None = Field(
        None, description="Of the rows of each mode; null in place of one is free for a label that is still to come."
    )
    false_alarms: Annotated[str, Field(max_length=40)] | None = Field(
        None, description='False incidents that are accepted: "1/day", "1/1000" slices, or "fdr 10%".'
    )
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(None, description="Seconds between slices.")


class StreamInfo(BaseModel):
    """A stream."""

    name: str
    shape: list[int]
    dims: list[str]
    labels: list[list[str | None] | None]
    false_alarms: str | None
    step: float | None
    coming: list[bool] = Field(description="For each mode, whether labels may come to it.")
    grown: list[list[int | list[int]]] = Field(description="From which slice on slices had which shape, if they grew.")
    next: int = Field(description="Sequence number of the next slice.")
    newest: dict[str, Any] | None = Field(None, description="Sequence number, time and numbers of the newest slice.")


class StreamList(BaseModel):
    """All streams, and whether they can only be looked at."""

    streams: list[StreamInfo]
    read_only: bool


class Alert(BaseModel):
    """An entry that does not fit."""

    position: list[int]
    labels: list[str]
    value: float | None
    expected: float | None
    std: float | None
    probability: float


class SliceResult(BaseModel):
    """What was found in a slice. Arrays are there where they were asked for; null is a number that is not finite."""

    sequence: int
    time: str | None
    duplicate: bool = Field(False, description="It had been accepted before; it was not learned twice.")
    error: str | None = Field(None, description="Why the model refused it; nothing was learned.")
    numbers: dict[str, Any] | None = None
    alerts: list[Alert] | None = None
    alerts_in_all: int | None = None
    incidents: list[dict[str, Any]] | None = Field(None, description="Incidents that opened, changed or closed.")
    data: Nested | None = None
    mean: Nested | None = None
    std: Nested | None = None
    outlier_probability: Nested | None = None


class PushAnswer(BaseModel):
    """Slices that were accepted: they survive a crash and a power cut."""

    stream: str
    next: int
    results: list[SliceResult]


class Series(BaseModel):
    """Curves, oldest first: one value for each slice in every list."""

    stream: str
    sequence: list[int]
    time: list[str]
    numbers: dict[str, list[Any]]
    weights: dict[str, list[float | None]]


class Cell(BaseModel):
    """The past of one entry."""

    stream: str
    position: list[int]
    labels: list[str]
    sequence: list[int]
    time: list[str]
    data: list[float | None]
    mean: list[float | None]
    std: list[float | None]
    outlier_probability: list[float | None]


class IncidentList(BaseModel):
    """Incidents, newest first."""

    stream: str
    incidents: list[dict[str, Any]]


class Said(BaseModel):
    """What a user says about an incident."""

    model_config = ConfigDict(extra="forbid", strict=True)

    false_alarm: bool = True


class Health(BaseModel):
    """Whether the service works."""

    status: str
    reason: str | None = None
    catching_up: int = Field(0, description="Streams that learn again what came before the last end.")
