"""Messages given to a broker; they are safe once `flush` says that none is left."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from undertow.sources.base import StreamError
from undertow.sources.brokers.base import Address
from undertow.sources.errors import import_extra

_TURN = 0.2
_HEADERS = 256
"""Bytes left for what NATS counts beside the body."""


class Publisher(Protocol):
    """Takes messages, in order."""

    @property
    def name(self) -> str:
        """Without passwords."""

    @property
    def failure(self) -> str:
        """What went wrong last; empty if nothing did."""

    def put(self, key: str, body: bytes) -> None:
        """On its way. A message of the same key that has arrived before is left out where the broker can do that.

        Raises:
            StreamError: It is larger than the broker takes.
        """

    def flush(self, patient: Callable[[], bool]) -> int:
        """Wait until all have arrived, as long as there is patience; returns how many have not."""

    def close(self) -> None:
        """End the connection."""


def publisher(address: str) -> Publisher:
    """By its address, ``nats://host/subject`` or ``kafka://host/topic``."""
    kind = JetStreamPublisher if address.startswith("nats://") else TopicPublisher
    return kind(address)


class JetStreamPublisher:
    """Publishes with the key as ``Nats-Msg-Id``; what is not acknowledged is sent again, in order."""

    def __init__(self, address: str) -> None:
        from undertow.sources.brokers.nats import EXAMPLE, Connection

        where = Address.parse(address, frozenset(), EXAMPLE)
        self.name, self._subject = f"{where.host}/{where.name}", where.name
        self._connection = Connection(where.server, where.host, self.name)
        self._waiting: deque[tuple[str, bytes]] = deque()
        self.failure = ""

    def put(self, key: str, body: bytes) -> None:  # noqa: D102
        most = self._connection.client.max_payload
        if len(body) + _HEADERS > most:
            raise _too_large(self.name, len(body), f"at most {most:,}")
        self._waiting.append((key, body))
        if len(self._waiting) > 64:
            self.flush(lambda: False)

    def flush(self, patient: Callable[[], bool]) -> int:  # noqa: D102
        pause = threading.Event()
        while self._waiting:
            try:
                self._connection.wait(self._send(list(self._waiting)))
            except Exception as error:  # the server is away, and comes back
                self.failure = str(error) or type(error).__name__
                if not patient():
                    break
                pause.wait(_TURN)
        return len(self._waiting)

    def close(self) -> None:  # noqa: D102
        self._connection.close()

    async def _send(self, messages: list[tuple[str, bytes]]) -> None:
        for key, body in messages:
            await self._connection.stream.publish(self._subject, body, timeout=2.0, headers={"Nats-Msg-Id": key})
            self._waiting.popleft()


class TopicPublisher:
    """An idempotent producer of Kafka. What is before the last hyphen is the message's key: one key, one order."""

    def __init__(self, address: str) -> None:
        from undertow.sources.brokers.kafka import EXAMPLE

        where = Address.parse(address, frozenset(), EXAMPLE)
        self.name, self._topic, self.failure = f"{where.host}/{where.name}", where.name, ""
        self._left = self._failed = 0
        self._kafka = import_extra("confluent_kafka", "kafka", self.name)
        self._client: Any = self._kafka.Producer(
            {"bootstrap.servers": where.host, "enable.idempotence": True, "log_level": 0, "linger.ms": 5}
        )

    def put(self, key: str, body: bytes) -> None:  # noqa: D102
        of_stream = key.rpartition("-")[0]
        while True:
            try:
                self._client.produce(self._topic, body, key=of_stream, headers={"id": key}, on_delivery=self._arrived)
            except BufferError:
                self._client.poll(_TURN)
            except self._kafka.KafkaException as error:
                raise _too_large(self.name, len(body), error.args[0].str()) from None
            else:
                self._left += 1
                return

    def flush(self, patient: Callable[[], bool]) -> int:  # noqa: D102
        while self._left > self._failed:  # the client has given up those that failed
            self._client.flush(_TURN)
            if self._left and not patient():
                break
        return self._left

    def close(self) -> None:  # noqa: D102
        self._client.purge()

    def _arrived(self, error: Any, message: Any) -> None:
        if error is None:
            self._left -= 1
        else:
            self._failed, self.failure = self._failed + 1, error.str()


def _too_large(name: str, size: int, why: str) -> StreamError:
    return StreamError(
        f"{name} does not take a message of {size:,} bytes ({why}): leave out arrays, or let it take more"
    )
