"""A subject of NATS JetStream, through a durable consumer.

The consumer is what keeps messages for us in streams that let go of what everybody has read. Its acknowledgements come
after our checkpoint. What it has handed out to a process that died, and what got lost on the way to us (its own numbers
show that: they count every delivery) is fetched from the stream by its sequence number, immediately, instead of waiting
until the server hands it out again; when it does, the number is known.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from undertow.sources.base import StreamError
from undertow.sources.brokers.base import PATIENCE, Address, Message
from undertow.sources.errors import import_extra
from undertow.sources.following import Follow

Answer = TypeVar("Answer")
BATCH = 64
"""Messages asked for together."""
ACK_WAIT = 60
"""Seconds after which the server hands out again what was not acknowledged: longer than between checkpoints."""
_TURN = 0.5
_ACK, _NAK = b"+ACK", b"-NAK"
EXAMPLE = "nats://localhost/metrics"


class Connection:
    """A client of NATS in a thread with an event loop of its own; it connects anew, for as long as it takes.

    Args:
        server: ``nats://[user:password@]host[:port]``.
        host: To be shown.
        purpose: What needs it, for the sentence when nats-py is absent.
    """

    def __init__(self, server: str, host: str, purpose: str) -> None:
        nats = import_extra("nats", "nats", purpose)
        self._host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="undertow nats", daemon=True)
        self._thread.start()
        self._failure = ""

        async def noted(error: Exception) -> None:
            self._failure = str(error) or type(error).__name__

        try:
            self.client = self.wait(
                nats.connect(
                    server,
                    connect_timeout=PATIENCE,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=_TURN,
                    allow_reconnect=True,
                    error_cb=noted,
                ),
                within=PATIENCE,
            )
        except Exception as error:
            self.close()
            why = self._failure or str(error) or type(error).__name__
            raise StreamError(f"{host} cannot be reached ({why}): start NATS there, or mend the address") from None
        self.stream = self.client.jetstream()

    def wait(self, answer: Coroutine[Any, Any, Answer], within: float = PATIENCE + _TURN) -> Answer:
        """The answer, in the caller's thread."""
        future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return future.result(within)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise TimeoutError(f"{self._host} does not answer") from None

    def start(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Begin something, and do not wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the connection and its thread; a second time does nothing."""
        if self._loop.is_closed() or not self._thread.is_alive():
            return
        if hasattr(self, "client"):
            with suppress(Exception):  # it is going away in any case
                self.wait(self.client.close(), within=2.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)


class JetStream:
    """Messages that a stream of JetStream keeps of a subject.

    Args:
        address: ``nats://[user:password@]host[:port]/subject[?durable=name&ack_wait=60]``; the durable consumer is
            "undertow" and the subject if it has no name: give one where several runs read the same subject.
    """

    def __init__(self, address: str) -> None:
        where = Address.parse(address, frozenset({"durable", "ack_wait"}), EXAMPLE)
        self._subject, self.name, self.lost = where.name, f"{where.host}/{where.name}", 0
        self._durable = where.options.get("durable") or f"undertow-{re.sub(r'[^A-Za-z0-9_-]', '_', where.name)}"
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self._durable):
            raise StreamError(f"durable must consist of letters, digits, - and _, got {self._durable!r}")
        self._ack_wait = where.options.get("ack_wait", str(ACK_WAIT))
        if not self._ack_wait.isdigit() or not int(self._ack_wait):
            raise StreamError(f"ack_wait must be an integer of seconds, at least 1, got {self._ack_wait!r}")
        self._connection = Connection(where.server, where.host, self.name)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._unacknowledged: dict[str, int] = {}  # numbers by the subject for the answer: bodies are not kept
        self._done = 0
        try:
            self._subscribe()
        except BaseException:
            self.close()
            raise

    def oldest(self) -> Message | None:  # noqa: D102
        return next(self._fetched(0, 2**62), None)

    def after(self, number: int, follow: Follow | None) -> Iterator[Message]:  # noqa: D102
        info = self._there(lambda: self._js.stream_info(self._stream))
        if info.config.subjects == [self._subject] and number:
            self.lost += max(0, info.state.first_seq - number - 1)
        for message in self._handed_out(number):
            number = message.number
            yield message
        counted, news = None, time.monotonic()
        while not self._closed.is_set():
            some = self._next(follow, news)
            if not some:
                if not self._closed.is_set():
                    yield from self._handed_out(number)  # the last may have got lost on the way
                return
            for one in some:
                marks = one.metadata.sequence
                self._keep(one.reply, marks.stream)
                missed = counted is None or marks.consumer != counted + 1
                counted = marks.consumer
                if marks.stream <= number:
                    continue  # it has come before
                for message in self._fetched(number, marks.stream - 1) if missed else ():
                    number = message.number
                    yield message
                number, news = marks.stream, time.monotonic()
                yield Message(number, one.data, _headers(one))

    def done(self, number: int) -> None:  # noqa: D102
        with self._lock:
            self._done = max(self._done, number)
            ready = [reply for reply, at in self._unacknowledged.items() if at <= self._done]
            for reply in ready:
                del self._unacknowledged[reply]
        self._answer(ready, _ACK)

    def close(self) -> None:  # noqa: D102
        with self._lock:
            left = list(self._unacknowledged)
            self._unacknowledged.clear()
        self._answer(left, _NAK)  # so that the next of us gets them immediately
        self._closed.set()
        self._connection.close()

    def _subscribe(self) -> None:
        """Find the stream of the subject and its durable consumer, or make one."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        self._js = self._connection.stream
        try:
            self._stream = self._connection.wait(self._js.find_stream_name_by_subject(self._subject))
        except NotFoundError:
            raise StreamError(
                f"no stream of JetStream keeps {self.name}: make one, nats stream add --subjects {self._subject}"
            ) from None
        except (ServiceUnavailableError, TimeoutError):
            raise StreamError(f"{self.name} needs JetStream: start the server with nats-server -js") from None
        info = self._connection.wait(self._js.stream_info(self._stream))
        self.identity = f"{self._stream} {info.created}"
        config = ConsumerConfig(
            durable_name=self._durable,
            filter_subject=self._subject,
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.ALL,
            ack_wait=int(self._ack_wait),
            max_ack_pending=-1,
        )
        self._pull = self._connection.wait(
            self._js.pull_subscribe(self._subject, durable=self._durable, stream=self._stream, config=config)
        )

    def _next(self, follow: Follow | None, news: float) -> list[Any]:
        """The next messages, which may be repetitions; none once nothing new came for as long as is waited."""
        while not self._closed.is_set():
            try:
                found: list[Any] = self._connection.wait(self._pull.fetch(BATCH, timeout=_TURN), within=PATIENCE)
                if found:  # a server that was started again answers without any
                    return found
            except TimeoutError:
                pass
            except Exception:  # the server is away, and comes back; or what is read was deleted
                self._closed.wait(_TURN)
                self._check()
            if follow is None and not self._info().num_pending:
                return []
            if follow is not None and not _waits(follow, news):
                return []
        return []

    def _handed_out(self, number: int) -> Iterator[Message]:
        """The messages after a number that the consumer has given out, to whomever."""
        return self._fetched(number, self._info().delivered.stream_seq or 0)

    def _info(self) -> Any:
        return self._there(lambda: self._js.consumer_info(self._stream, self._durable))

    def _check(self) -> None:
        """Ask once whether stream and consumer are still there; no answer is none."""
        from nats.js.errors import NotFoundError

        try:
            self._connection.wait(self._js.consumer_info(self._stream, self._durable), within=2 * _TURN)
        except NotFoundError:
            raise self._gone() from None
        except Exception:
            pass

    def _there(self, ask: Any) -> Any:
        """An answer about the stream or the consumer, which must be there."""
        from nats.js.errors import NotFoundError

        try:
            return self._patiently(ask)
        except NotFoundError:
            raise self._gone() from None

    def _gone(self) -> StreamError:
        what = f"the stream {self._stream} or its consumer {self._durable}"
        return StreamError(f"{what} was deleted while {self.name} was read: start again")

    def _fetched(self, number: int, last: int) -> Iterator[Message]:
        """The messages after one number up to another, by their numbers."""
        from nats.js.errors import NotFoundError

        while number < last and not self._closed.is_set():
            ask = partial(self._js.get_msg, self._stream, seq=number + 1, subject=self._subject, next=True)
            try:
                found = self._patiently(ask)
            except NotFoundError:
                return
            if found.seq > last:
                return
            number = found.seq
            yield Message(number, found.data or b"", {k.lower(): v for k, v in (found.headers or {}).items()})

    def _patiently(self, ask: Any) -> Any:
        """An answer, however long the server is away; what is asked for may not be there."""
        from nats.js.errors import NotFoundError

        while not self._closed.is_set():
            try:
                return self._connection.wait(ask())
            except NotFoundError:
                raise
            except Exception:
                self._closed.wait(_TURN)
        raise StreamError(f"{self.name} was closed")

    def _keep(self, reply: str, number: int) -> None:
        """To be acknowledged later, or now if it is a repetition of what is done."""
        with self._lock:
            done = number <= self._done
            if not done:
                self._unacknowledged[reply] = number
        if done:
            self._answer([reply], _ACK)

    def _answer(self, replies: list[str], what: bytes) -> None:
        """Acknowledge messages, or give them back; what does not arrive is handed out once more."""

        async def all_of_them() -> None:
            for reply in replies:
                await self._connection.client.publish(reply, what)
            await self._connection.client.flush(timeout=2)

        if replies and not self._closed.is_set():
            with suppress(Exception):
                self._connection.wait(all_of_them(), within=2.0)


def _waits(follow: Follow, news: float) -> bool:
    left = float("inf") if follow.idle is None else news + follow.idle - time.monotonic()
    return left > 0 and not follow.stopped


def _headers(one: Any) -> dict[str, str]:
    return {key.lower(): value for key, value in (one.headers or {}).items()}
