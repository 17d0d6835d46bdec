"""Sends what is in the outbox, in a thread of its own for each channel: nobody waits for a slow receiver."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from undertow.incidents.delivery.channels import Channel, Refused
from undertow.incidents.delivery.outbox import Outbox
from undertow.incidents.incident import Change

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds until the second try; each next wait is twice as long, up to a minute."""
PATIENCE = 15.0
"""Seconds that the end of a run waits for messages that are still to be sent."""


def message(change: Change, stream: str, fingerprint: str) -> tuple[str, dict[str, Any]]:
    """The key and the content of what is sent about a change."""
    one = change.incident
    identity = f"{fingerprint}\n{stream}\n{one.id}\n{one.since}\n{change.what}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return key, {"what": change.what, "stream": stream, "incident": one.to_json()}


class Courier:
    """Brings each change to every channel: at least once, in order, with a key by which receivers know a repetition.

    Args:
        outbox: What is to be sent; earlier messages that were not sent yet are sent first.
        channels: Where to.
        stream: Name of the stream.
        fingerprint: Of its source.
        first_wait: Seconds until the second try.
    """

    def __init__(
        self,
        outbox: Outbox,
        channels: Sequence[Channel],
        stream: str,
        fingerprint: str = "",
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self._outbox, self._channels = outbox, tuple(channels)
        self._stream, self._fingerprint, self._first_wait = stream, fingerprint, first_wait
        self._stop, self._news = threading.Event(), [threading.Event() for _ in channels]
        self._failures: list[str] = []
        self._failed_with: dict[str, str] = {}
        self._threads = [
            threading.Thread(target=self._work, args=pair, name="undertow courier", daemon=True)
            for pair in zip(self._channels, self._news, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, change: Change, stream: str | None = None, fingerprint: str | None = None) -> None:
        """Send this; it is on the disk before this returns, and it is known if it was put before.

        Args:
            change: That an incident has opened, changed or closed.
            stream: Its stream, where one courier serves several.
            fingerprint: Of that one.
        """
        key, content = message(change, stream or self._stream, fingerprint or self._fingerprint)
        if self._outbox.add(key, content):
            for news in self._news:
                news.set()

    def close(self, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> list[str]:
        """Wait a little for what is under way; returns sentences about what could not be sent."""
        end = clock() + patience
        while clock() < end and any(self._outbox.pending(one.name) for one in self._channels):
            time.sleep(0.02)
        self._stop.set()
        for news, thread in zip(self._news, self._threads, strict=True):
            news.set()
            thread.join(1.0)
        left = [
            f"{len(waiting)} messages could not be delivered to {one.name} "
            f"({self._failed_with.get(one.name, 'too slow')}): they are sent when the stream goes on"
            for one in self._channels
            if (waiting := self._outbox.pending(one.name))
        ]
        if not any(thread.is_alive() for thread in self._threads):
            self._outbox.close()
        return [*self._failures, *left]

    def _work(self, channel: Channel, news: threading.Event) -> None:
        wait = self._first_wait
        while not self._stop.is_set():
            news.clear()
            for key, content in self._outbox.pending(channel.name):
                if self._stop.is_set():
                    return
                try:
                    channel.send(key, content)
                except Refused as error:
                    self._failures.append(
                        f"a message was refused for good by {channel.name} ({error}): check the address"
                    )
                except Exception as error:  # whatever it is, the stream goes on and the message stays
                    self._failed_with[channel.name] = " ".join(str(error).split()) or type(error).__name__
                    self._stop.wait(wait)
                    wait = min(2 * wait, LONGEST_WAIT)
                    break
                self._outbox.done(key, channel.name)
                wait = self._first_wait
            else:
                news.wait(1.0)
