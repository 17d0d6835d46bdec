"""Streams of the service fed by a broker, and their results given to one.

A subscription writes down which message comes next and which number its first slice will have before it pushes it. If
the process dies, it pushes that message again with the same numbers, and the service knows a number that it has. The
broker is told once the slices survive. A publication writes down how far the broker has what the store keeps. Numbers
count for one stream of the service and for one log of the broker: where either was made anew, they begin again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import orjson

from undertow.service.answers import kept_json
from undertow.service.bodies import Given, checked_labels
from undertow.service.errors import Busy, Invalid, NotFound, ServiceError
from undertow.service.spec import checked_name, checked_spec
from undertow.service.store.base import Store
from undertow.service.streams import Stream, Streams
from undertow.service.times import checked
from undertow.sources.base import BadInputError, StreamError
from undertow.sources.brokers.base import Message, is_address, shown
from undertow.sources.brokers.publishing import Publisher, publisher
from undertow.sources.brokers.slices import parts
from undertow.sources.brokers.source import open_log
from undertow.sources.following import Follow

_LOG = logging.getLogger("undertow.service")
_PAUSE = 0.5
_A_TIME = 64
_SOME_TIME = 5.0
Answer = TypeVar("Answer")


def named(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """``stream=nats://host/subject`` as the name of the stream and the address.

    Raises:
        ServiceError: It is not of that form.
    """
    pairs = []
    for text in texts:
        name, sign, address = text.partition("=")
        if not sign or not is_address(address):
            raise ServiceError(
                f"it must be STREAM=nats://host/subject or STREAM=kafka://host/topic, got {shown(text)!r}"
            )
        pairs.append((checked_name(name), address))
    return pairs


class Mark:
    """A few numbers in the store, replaced together."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self.kept: dict[str, Any] = json.loads(store.mark(name) or "{}")

    def write(self, **kept: Any) -> None:
        """Durable when this returns."""
        self.kept = kept
        self._store.set_mark(self._name, json.dumps(kept))


class Worker:
    """A thread that goes on until it is stopped, whatever the broker does.

    Args:
        streams: Of the service.
        name: Of the stream.
        address: Of the broker.
    """

    kind = ""

    def __init__(self, streams: Streams, name: str, address: str) -> None:
        self._streams, self._name, self._address = streams, name, address
        self._mark = Mark(streams.store, f"{self.kind} {name}")
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name=f"undertow {self.kind}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        self._thread.join(5.0)

    def _ask(self, question: Coroutine[Any, Any, Answer]) -> Answer:
        """Something of the service, which lives in its loop."""
        return asyncio.run_coroutine_threadsafe(question, self._loop).result(60)

    def _go_on(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except Exception as error:  # a broker that is away, or a stream that was deleted
                if not self._stopped.is_set():
                    self._say(str(error) or type(error).__name__)
            self._stopped.wait(_SOME_TIME)

    def _work(self) -> None:
        raise NotImplementedError

    def _say(self, what: str) -> None:
        _LOG.warning("%s of %s: %s", self.kind, self._name, what, extra={"fields": {"stream": self._name}})


class Subscription(Worker):
    """Feeds a stream, which takes slices from nobody else; it is made for the first slice if it is not there."""

    kind = "subscription"

    def __init__(self, *arguments: Any) -> None:
        self._follow = Follow()
        super().__init__(*arguments)

    def stop(self) -> None:
        """End it, with every wait."""
        self._follow.stop()
        super().stop()

    def _work(self) -> None:
        log = open_log(self._address)
        try:
            self._log = log.identity
            if self._mark.kept.get("log", self._log) != self._log:
                self._say(f"{log.name} was made anew: it is read from its beginning")
                self._mark.write()
            for message in log.after(max(0, self._mark.kept.get("message", 1) - 1), self._follow):
                if self._stopped.is_set():
                    return
                self._take(message)
                log.done(message.number)
        finally:
            log.close()

    def _take(self, message: Message) -> None:
        """Push the slices of a message, under the numbers that they were meant to have if this is not the first try."""
        known = self._mark.kept
        if message.number < known.get("message", 0):
            return
        stream = self._stream_for(message)
        if stream is None:
            return
        again = message.number == known.get("message")
        same = known.get("stream", stream.key) == stream.key  # else it was deleted, and has had none of them
        first = known["first"] if again and same else stream.next
        sequence = known["before"] if again else known.get("sequence", 0)
        given, newest = self._given(message, stream, first, sequence)
        marks = {"message": message.number, "first": first, "before": sequence, "sequence": newest}
        self._mark.write(log=self._log, stream=stream.key, **marks)
        while given and not self._stopped.is_set():
            try:
                self._ask(self._streams.push(stream, given, wait=False))
                return
            except Busy as error:
                self._stopped.wait(error.retry_after)
            except Invalid as error:
                return self._say(f"message {message.number} is left out ({error})")
        if given:
            raise StreamError("stopped before the message was taken")

    def _given(self, message: Message, stream: Stream, first: int, sequence: int) -> tuple[list[Given], int]:
        """The slices with their numbers, without those that their sender had sent before."""
        found: list[Given] = []
        try:
            for part in parts(message, shown(self._address), len(stream.spec.shape)):
                if part.sequence is not None:
                    if part.sequence < sequence:
                        continue
                    sequence = part.sequence + 1
                labels = checked_labels(part.labels, stream.spec)
                if labels is None and not stream.spec.fits(part.values.shape):
                    raise BadInputError(f"slices have the shape {stream.spec.shape}, got {part.values.shape}")
                when = None if part.time is None else checked(_plain(part.time))
                found.append(Given(part.values, when, first + len(found), labels))
        except (BadInputError, Invalid) as error:
            self._say(f"message {message.number} is left out ({error})")
            return [], sequence
        return found, sequence

    def _stream_for(self, message: Message) -> Stream | None:
        try:
            return self._streams.get(self._name)
        except NotFound:
            pass
        try:
            shape = parts(message, self._name, None)[0].values.shape
            spec = checked_spec({"shape": shape}, self._streams.limits)
        except (BadInputError, ServiceError, IndexError) as error:
            self._say(f"message {message.number} is left out ({error})")
            return None
        return self._ask(self._streams.create(self._name, spec))[0]


class Publication(Worker):
    """Publishes what was found in every slice of a stream: once, as far as the broker knows keys."""

    kind = "publication"

    def _work(self) -> None:
        to = publisher(self._address)
        try:
            while not self._stopped.is_set():
                if not self._some(to):
                    self._stopped.wait(_PAUSE)
        finally:
            to.close()

    def _some(self, to: Publisher) -> int:
        """Publish some of what is new; how much it was."""
        try:
            stream = self._streams.get(self._name)
        except NotFound:
            return 0  # not yet
        store, known = self._streams.store, self._mark.kept
        first = known.get("next", 0) if known.get("stream", stream.key) == stream.key else 0
        # The newest are asked for, so the window grows from where we are; gaps are slices that the model refused.
        found = store.numbers(stream.key, first, first + _A_TIME, _A_TIME)
        if not found and (kept := store.kept(stream.key, None)) is not None and kept.sequence >= first + _A_TIME:
            self._mark.write(stream=stream.key, next=first + _A_TIME)  # let go of before it was published
            return 1
        for sequence, _, _ in found:
            kept = store.kept(stream.key, sequence)
            if kept is not None:
                body = orjson.dumps({"stream": self._name, **kept_json(kept, stream.spec, ())})
                try:
                    to.put(f"{self._name}-{stream.key}-{sequence}", body)
                except StreamError as error:
                    self._say(f"slice {sequence} is left out ({error})")
        end = time.monotonic() + _SOME_TIME
        if to.flush(lambda: time.monotonic() < end and not self._stopped.is_set()):
            raise StreamError(f"the broker does not take messages ({to.failure or 'it does not answer'})")
        if found:
            self._mark.write(stream=stream.key, next=found[-1][0] + 1)
        return len(found)


def _plain(value: Any) -> Any:
    return str(value) if not isinstance(value, (int, float)) else value
