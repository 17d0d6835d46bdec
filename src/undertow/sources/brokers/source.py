"""Messages of a broker as a source of slices, with positions that hold across deaths of everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from undertow.sources.base import JSON, BadInputError, StreamError
from undertow.sources.brokers.base import Log, Message, is_address, shown
from undertow.sources.brokers.slices import Part, parts
from undertow.sources.errors import left_out
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.options import SourceOptions


class BrokerSource(Source):
    """Slices of the messages of a log.

    A position is the number of the last message that is over, how many slices of the next one are, and the newest
    sequence number that a sender gave.
    """

    format = "messages"

    def __init__(self, log: Log, options: SourceOptions) -> None:
        self._log, self._follow, self._skip_bad = log, options.follow, options.on_bad == "skip"
        self._keys = options.time or "time", options.value or "values"
        self._bad, self._first_bad, self._repeated = 0, "", 0
        super().__init__(log.name, self._first_shape())
        self.time_name = self._keys[0]

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        number, done, sequence = (count_in(position, key, self.name) for key in ("message", "slices", "sequence"))
        for message in self._log.after(number, self._follow):
            found = self._parts(message)
            for count, part in enumerate(found, 1):
                if count <= done:
                    continue
                if part.sequence is not None and part.sequence < sequence:
                    self._repeated += 1
                    continue
                sequence = sequence if part.sequence is None else part.sequence + 1
                last = count == len(found)
                over, some = (message.number, 0) if last else (number, count)
                marks: dict[str, JSON] = {"message": over, "slices": some, "sequence": sequence}
                yield Raw(part.time, marks, partial(np.asarray, part.values))
            number, done = message.number, 0

    def done(self, position: Mapping[str, JSON]) -> None:
        """Everything before this position is safe: the broker may know."""
        self._log.done(count_in(position, "message", self.name))

    def identity(self) -> str:  # noqa: D102
        return self._log.identity

    def skipped_rows(self) -> list[str]:  # noqa: D102
        notices = [left_out("message", self._bad, self.name, self._first_bad)] if self._bad else []
        if self._repeated:
            notices.append(f"{self._repeated} slices of {self.name} had come before, by their sequence numbers")
        if self._log.lost:
            notices.append(f"{self._log.lost} messages of {self.name} were let go by the broker before they were read")
        return notices

    def close(self) -> None:  # noqa: D102
        super().close()
        self._log.close()

    def _first_shape(self) -> tuple[int, ...]:
        """Of the first slice there is, waiting for it where that was asked for."""
        oldest = self._log.oldest()
        while oldest is None and self._follow is not None and self._follow.wait(lambda: self._log.oldest() is not None):
            oldest = self._log.oldest()
        if oldest is None:
            raise StreamError(f"{self._log.name} holds no messages now: send some, or wait for them with --follow")
        try:
            return parts(oldest, self._log.name, None, *self._keys)[0].values.shape
        except (BadInputError, IndexError) as error:
            raise StreamError(f"the first message must be a slice: {error or 'it is empty'}") from error

    def _parts(self, message: Message) -> list[Part]:
        try:
            return parts(message, self._log.name, len(self.shape), *self._keys)
        except BadInputError as error:
            if not self._skip_bad:
                raise StreamError(f"{error}, or leave such messages out with --on-bad skip (on_bad='skip')") from error
            self._bad += 1
            self._first_bad = self._first_bad or str(error).partition(": ")[0]
            return []


def open_broker(address: str, options: SourceOptions) -> Source:
    """The messages of a subject or a topic.

    Args:
        address: ``nats://host[:port]/subject`` or ``kafka://host[:port]/topic``.
        options: time, value, follow and on_bad are known.
    """
    options.check_known(shown(address), frozenset({"time", "value", "follow"}))
    return BrokerSource(open_log(address), options)


def open_log(address: str) -> Log:
    """Connect."""
    assert is_address(address)
    if address.startswith("nats://"):
        from undertow.sources.brokers.nats import JetStream

        return JetStream(address)
    from undertow.sources.brokers.kafka import Topic

    return Topic(address)
