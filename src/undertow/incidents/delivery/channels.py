"""Ways that a message can go: a file of JSON lines, a webhook, e-mail, NATS. Each by its address."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

SECRET, PASSWORD = "UNDERTOW_WEBHOOK_SECRET", "UNDERTOW_SMTP_PASSWORD"
"""Environment variables: secrets do not belong on command lines."""

_TAIL = 2**16  # bytes at the end of a file of lines in which a message that is sent again is looked for


class Refused(Exception):
    """A message will never be taken: sending it again would not help."""


class Channel(Protocol):
    """Takes one message at a time."""

    @property
    def name(self) -> str:
        """By which the outbox knows it; without secrets."""

    def send(self, key: str, message: dict[str, Any]) -> None:
        """Deliver, or raise: `Refused` if there is no point in trying again, anything else to be tried again."""


class Lines:
    """Appends to a file of JSON lines, which begin with the key."""

    def __init__(self, path: Path) -> None:
        self.name = f"file {path}"
        self._path = path

    def send(self, key: str, message: dict[str, Any]) -> None:
        """One line, on the disk before this returns; none if a process that was killed had written it already."""
        line = json.dumps({"key": key, **message}, ensure_ascii=False).encode() + b"\n"
        with open(self._path, "a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            *whole, half = file.read().split(b"\n")
            begins = b'{"key": ' + json.dumps(key).encode()
            if not any(one.startswith(begins) for one in whole):
                if half and line.startswith(half):  # killed while it wrote
                    file.truncate(size - len(half))
                elif half:
                    file.write(b"\n")
                file.write(line)
                file.flush()
            os.fsync(file.fileno())


def channel(address: str) -> Channel:
    """The channel with this address.

    Args:
        address: A file name that ends in .jsonl, "http(s)://…", "smtp(s)://[user@]host[:port]/?to=a@b.org[&from=…]"
            or "nats://host[:port]/subject". The secret that webhooks are signed with and the password of a mail host
            are taken from the environment, UNDERTOW_WEBHOOK_SECRET and UNDERTOW_SMTP_PASSWORD.

    Raises:
        ValueError: There is no such channel; one sentence says what it should be.

    Examples:
        >>> channel("https://example.org/hook").name
        'https://example.org/hook'
    """
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") and parts.hostname:
        from undertow.incidents.delivery.webhook import Webhook

        return Webhook(address, os.environ.get(SECRET, ""))
    if parts.scheme in ("smtp", "smtps") and parts.hostname:
        from undertow.incidents.delivery.mail import Mail

        return Mail.at(parts, os.environ.get(PASSWORD, ""))
    if parts.scheme == "nats" and parts.hostname:
        from undertow.incidents.delivery.nats import Nats

        return Nats.at(parts)
    if "://" not in address and address.endswith(".jsonl"):
        return Lines(Path(address))
    raise ValueError(
        "deliver must be a file name ending in .jsonl, https://…, smtp://host/?to=a@b.org or nats://host/subject, "
        f"got {address!r}"
    )
