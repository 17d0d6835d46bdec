"""What the service asks of a store. Everything in one `write` is durable when it returns, or none of it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Stored:
    """A stream as the store knows it.

    Attributes:
        key: A number that is never given twice.
        name: What clients call it.
        spec: Plain JSON.
        next: The sequence number after the newest logged slice.
        feedback: The number after the newest feedback.
        behind: Whether the log holds something that the newest checkpoint does not.
    """

    key: int
    name: str
    spec: dict[str, Any]
    next: int = 0
    feedback: int = 0
    behind: bool = False


@dataclass(frozen=True)
class LoggedSlice:
    """A slice that was accepted; ``body`` is a NumPy file."""

    key: int
    sequence: int
    time: str
    body: bytes


@dataclass(frozen=True)
class Described:
    """What a stream is from now on, as plain JSON."""

    key: int
    spec: dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """What was found in a slice: numbers as JSON, and its arrays as bytes (`undertow.service.frames`)."""

    key: int
    sequence: int
    time: str
    numbers: str
    body: bytes


@dataclass(frozen=True)
class Feedback:
    """What a user said about an incident, after the slice ``after`` was logged."""

    key: int
    number: int
    after: int
    incident: int
    false_alarm: bool


@dataclass(frozen=True)
class KeptIncident:
    """An incident as plain JSON, the newest version."""

    key: int
    id: int
    content: str


@dataclass(frozen=True)
class Checkpoint:
    """A stream after all slices before ``next`` and all feedback before ``feedback``.

    Slices before it leave the log, results before ``keep_from`` are let go.
    """

    key: int
    next: int
    feedback: int
    model: bytes
    incidents: bytes
    keep_from: int = 0


Write = LoggedSlice | Described | Kept | Feedback | KeptIncident | Checkpoint


class Store(Protocol):
    """Called from several threads; one of them writes."""

    def streams(self) -> list[Stored]:
        """All of them, by name."""

    def create(self, name: str, spec: dict[str, Any]) -> Stored:
        """A new stream; durable when this returns."""

    def delete(self, key: int) -> None:
        """A stream and everything that belongs to it."""

    def write(self, writes: Sequence[Write]) -> None:
        """All of them in one transaction; what belongs to a deleted stream is left out."""

    def logged(self, key: int, first: int, most: int) -> list[LoggedSlice]:
        """Slices of the log from a sequence number on."""

    def checkpoint(self, key: int) -> Checkpoint | None:
        """The newest."""

    def feedback(self, key: int, first: int) -> list[Feedback]:
        """From a number on."""

    def kept(self, key: int, sequence: int | None) -> Kept | None:
        """One slice, the newest for None."""

    def numbers(self, key: int, first: int, last: int, most: int) -> list[tuple[int, str, str]]:
        """Sequence number, time and numbers of the newest ``most`` slices from ``first`` to before ``last``."""

    def pieces(
        self, key: int, first: int, last: int, offsets: Sequence[int], most: int
    ) -> list[tuple[int, str, tuple[bytes, ...]]]:
        """Four bytes at each of these offsets of the arrays of slices, with sequence number and time."""

    def incidents(self, key: int, most: int) -> list[str]:
        """The newest, as JSON, newest first."""

    def mark(self, name: str) -> str | None:
        """A short text by its name."""

    def set_mark(self, name: str, content: str) -> None:
        """Replace it; durable when this returns."""

    def put_message(self, key: str, content: str, names: Sequence[str], keys: int) -> bool:
        """A message for these channels, durable when this returns; False if its key is among the newest ``keys``."""

    def messages(self, name: str) -> list[tuple[str, str]]:
        """Keys and contents of what a channel has not taken, oldest first."""

    def message_done(self, key: str, name: str) -> None:
        """A channel has taken a message."""

    def close(self) -> None:
        """Release everything."""
