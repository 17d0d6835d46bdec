"""A message on a subject of a NATS server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import SplitResult

TIMEOUT = 10.0
"""Seconds that a server of NATS may take to answer."""


@dataclass(frozen=True)
class Nats:
    """Publishes with the key as ``Nats-Msg-Id``: a JetStream that keeps the subject leaves out what it has already."""

    server: str
    subject: str

    @property
    def name(self) -> str:
        """Address and subject."""
        return f"{self.server}/{self.subject}"

    @classmethod
    def at(cls, parts: SplitResult) -> Nats:
        """By its address, nats://host[:port]/subject."""
        subject = parts.path.strip("/")
        if not subject or any(character.isspace() or character in "*>" for character in subject):
            raise ValueError(f"deliver: nats://{parts.hostname} must name a subject (/subject), got {subject!r}")
        if find_spec("nats") is None:
            raise ValueError("deliver to NATS needs nats-py: pip install 'undertow[nats]'")
        return cls(f"nats://{parts.netloc}", subject)

    def send(self, key: str, message: dict[str, Any]) -> None:
        """Published and acknowledged by the server before this returns."""
        asyncio.run(self._publish(key, json.dumps({"key": key, **message}, ensure_ascii=False).encode()))

    async def _publish(self, key: str, body: bytes) -> None:
        import nats

        async def quiet(_: Exception) -> None:
            """What goes wrong is raised below; nats-py would log it as well."""

        client = await nats.connect(
            self.server, connect_timeout=TIMEOUT, allow_reconnect=False, max_reconnect_attempts=0, error_cb=quiet
        )
        try:
            await client.publish(self.subject, body, headers={"Nats-Msg-Id": key})
            await client.flush(timeout=int(TIMEOUT))
        finally:
            await client.close()
