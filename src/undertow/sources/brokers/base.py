"""What a broker is to a stream: a log of numbered messages, read from any number on and acknowledged.

A position is a number, and it is kept in our own checkpoint, together with the model that has learned everything up
to it. That is acknowledged afterwards, and only so that it can let go of messages and show others how far we are: what
it remembers never decides where reading continues. So a message that comes twice is known by its number, and one that
was handed to a process which died before its checkpoint is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from undertow.sources.base import StreamError
from undertow.sources.following import Follow

PATIENCE = 10.0
"""Seconds that an answer of a broker is waited for."""


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        number: Greater than that of every message before it.
        body: As it came.
        headers: Texts by their names in small letters.
    """

    number: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Log(Protocol):
    """Messages of one subject or topic."""

    @property
    def name(self) -> str:
        """What to call it; without passwords."""

    @property
    def identity(self) -> str:
        """Another one if it was deleted and made anew: numbers begin again then."""

    @property
    def lost(self) -> int:
        """How many messages the broker had let go of before they were read."""

    def oldest(self) -> Message | None:
        """The first message there is now."""

    def after(self, number: int, follow: Follow | None) -> Iterator[Message]:
        """Every message after this number once, in order: until the newest there is now, or as long as is waited."""

    def done(self, number: int) -> None:
        """Everything up to this number is safe with us. Called from another thread; never raises."""

    def close(self) -> None:
        """End the connection, and every wait."""


@dataclass(frozen=True)
class Address:
    """``scheme://[user:password@]host[:port]/name[?key=value]``.

    Attributes:
        server: ``scheme://[user:password@]host[:port]``.
        host: ``host[:port]``, to be shown.
        name: Subject or topic.
        options: Of the query.
    """

    server: str
    host: str
    name: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, address: str, known: frozenset[str], example: str) -> Address:
        """Take it apart.

        Raises:
            StreamError: It names no host or no subject, or has an option that is not known.
        """
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        name = unquote(parts.path.strip("/"))
        if not host or not name or any(character.isspace() for character in name):
            raise StreamError(f"{parts.scheme}://{host} must name a host and what is read there, such as {example}")
        options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        for key in sorted(options.keys() - known):
            raise StreamError(f"{parts.scheme}://{host}/{name} knows {', '.join(sorted(known))}, got {key!r}")
        return cls(f"{parts.scheme}://{parts.netloc}", host, name, options)


def shown(address: str) -> str:
    """An address without user and password."""
    scheme, sign, rest = address.partition("://")
    host, slash, name = rest.partition("/")
    return f"{scheme}{sign}{host.rpartition('@')[2]}{slash}{name}"


def is_address(source: str) -> bool:
    """Whether a source is the address of a broker."""
    return source.startswith(("nats://", "kafka://"))
