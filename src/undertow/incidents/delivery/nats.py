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
    """Publishes with the key as ``Nats-Msg-Id``.

    Where a JetStream keeps the subject, its acknowledgement is waited for, and it leaves out what it has already.
    """

    server: str
    subject: str

    @property
    def name(self) -> str:
        """Address and subject, without user and password."""
        return f"nats://{self.server.rpartition('//')[2].rpartition('@')[2]}/{self.subject}"

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
        """Taken by the stream that keeps the subject before this returns; by the server, where none does."""
        asyncio.run(self._publish(key, json.dumps({"key": key, **message}, ensure_ascii=False).encode()))

    async def _publish(self, key: str, body: bytes) -> None:
        import nats

        async def quiet(_: Exception) -> None:
            """What goes wrong is raised below; nats-py would log it as well."""

        client = await nats.connect(
            self.server, connect_timeout=TIMEOUT, allow_reconnect=False, max_reconnect_attempts=0, error_cb=quiet
        )
        try:
            if await self._is_kept(client):
                await client.jetstream().publish(self.subject, body, timeout=TIMEOUT, headers={"Nats-Msg-Id": key})
            else:
                await client.publish(self.subject, body, headers={"Nats-Msg-Id": key})
                await client.flush(timeout=int(TIMEOUT))
        finally:
            await client.close()

    async def _is_kept(self, client: Any) -> bool:
        """Whether a stream of JetStream takes the subject; a server may have none, or no JetStream."""
        from nats.errors import NoRespondersError
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        try:
            await client.jetstream(timeout=TIMEOUT).find_stream_name_by_subject(self.subject)
        except (NotFoundError, NoRespondersError, ServiceUnavailableError):
            return False
        return True
