"""A topic of Kafka, through confluent-kafka: one partition, whose offsets are the numbers of its messages.

Offsets are committed for a consumer group after our checkpoint, to be looked at by others; where reading continues is
decided by our own position alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.brokers.base import PATIENCE, Address, Message
from undertow.sources.errors import import_extra
from undertow.sources.following import Follow

BATCH = 256
_TURN = 0.5
EXAMPLE = "kafka://localhost:9092/metrics"


class Topic:
    """Messages of one partition of a topic.

    Args:
        address: ``kafka://host[:port]/topic[?group=name&partition=0]``. Times and numbers of slices have one order only
            within a partition.
    """

    def __init__(self, address: str) -> None:
        where = Address.parse(address, frozenset({"group", "partition"}), EXAMPLE)
        self._kafka = import_extra("confluent_kafka", "kafka", f"{where.host}/{where.name}")
        partition = where.options.get("partition", "0")
        if not partition.isdigit():
            raise StreamError(f"partition must be a number, got {partition!r}")
        self._topic, self._partition = where.name, int(partition)
        self.name, self.lost = f"{where.host}/{where.name}", 0
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._reading, self._done, self._committed = False, 0, 0
        self._client: Any = self._kafka.Consumer(
            {
                "bootstrap.servers": where.host,
                "group.id": where.options.get("group") or f"undertow-{where.name}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,  # offsets of transactions hold no message: the last number may never come
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            self._find()
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> str:
        """Kafka does not say whether a topic was made anew."""
        return f"{self._topic} {self._partition}"

    def oldest(self) -> Message | None:  # noqa: D102
        return next(self.after(0, None), None)

    def after(self, number: int, follow: Follow | None) -> Iterator[Message]:  # noqa: D102
        first, end = self._offsets()
        if number > end:
            raise StreamError(
                f"{self.name} has {end} messages, and {number} of it were read: it was made anew, begin afresh"
            )
        if number and first > number:
            self.lost += first - number
        self._client.assign([self._place(max(number, first))])  # the offset of a message is its number less one
        last_news = time.monotonic()
        self._reading = True
        try:
            while not self._closed.is_set() and (follow is not None or number < end):
                for one in self._client.consume(BATCH, timeout=_TURN):
                    error = one.error()
                    if error is not None:
                        if error.fatal():
                            raise StreamError(f"{self.name} cannot be read any more ({error.str()})")
                        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                            number = max(number, one.offset())
                        continue  # else the broker is away, and comes back
                    if one.offset() < number:
                        continue
                    number, last_news = one.offset() + 1, time.monotonic()
                    yield Message(number, one.value() or b"", _headers(one))
                self._commit()
                if follow is not None:
                    idle = float("inf") if follow.idle is None else follow.idle
                    if follow.stopped or time.monotonic() - last_news >= idle:
                        return
        finally:
            self._reading = False
            if self._closed.is_set():
                self.close()

    def done(self, number: int) -> None:  # noqa: D102
        self._done = max(self._done, number)
        if not self._reading:  # else by the thread that reads: while one does, no other gets an answer
            self._commit()

    def _commit(self) -> None:
        with self._lock:
            if not self._closed.is_set() and self._done > self._committed:
                self._committed = self._done
                with suppress(self._kafka.KafkaException):  # nothing is decided by it
                    self._client.commit(offsets=[self._place(self._done)], asynchronous=True)

    def close(self) -> None:  # noqa: D102
        self._closed.set()
        with self._lock:
            if self._client is not None and not self._reading:
                with suppress(self._kafka.KafkaException):
                    if self._done > self._committed:
                        self._client.commit(offsets=[self._place(self._done)], asynchronous=False)
                self._client.close()
                self._client = None

    def _place(self, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic, self._partition, offset)

    def _offsets(self) -> tuple[int, int]:
        """Of the oldest message there is, and of the next one."""
        try:
            first, end = self._client.get_watermark_offsets(self._place(0), timeout=PATIENCE)
        except self._kafka.KafkaException as error:
            raise StreamError(f"{self.name} cannot be read ({error.args[0].str()}): is the partition there?") from None
        return int(first), int(end)

    def _find(self) -> None:
        try:
            known = self._client.list_topics(self._topic, timeout=PATIENCE).topics[self._topic]
        except self._kafka.KafkaException as error:
            raise StreamError(
                f"{self.name} cannot be reached ({error.args[0].str()}): start a broker there, or mend the address"
            ) from None
        if known.error is not None or not known.partitions:
            raise StreamError(f"{self.name} does not exist: make the topic first")
        if self._partition not in known.partitions:
            raise StreamError(f"partition must be below {len(known.partitions)} for {self.name}, got {self._partition}")


def _headers(one: Any) -> dict[str, str]:
    return {key.lower(): value.decode("utf-8", "replace") for key, value in one.headers() or () if value is not None}
