"""What is still to be delivered, in the store: it goes where the streams go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from undertow.incidents.delivery.outbox import KEYS
from undertow.service.store.base import Store


class StoreOutbox:
    """As `undertow.incidents.delivery.FileOutbox`, in the tables of a store.

    Args:
        store: Of the service, which closes it.
        names: Of the channels that messages are for from now on.
    """

    def __init__(self, store: Store, names: Sequence[str]) -> None:
        self._store, self._names = store, tuple(names)

    def add(self, key: str, content: dict[str, Any]) -> bool:
        """Keep a message until it is sent, durable when this returns; False if it is known already."""
        return self._store.put_message(key, json.dumps(content, ensure_ascii=False), self._names, KEYS)

    def done(self, key: str, name: str) -> None:
        """A channel has taken a message, or never will."""
        self._store.message_done(key, name)

    def pending(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """What a channel has not taken yet, oldest first."""
        return [(key, json.loads(content)) for key, content in self._store.messages(name)]

    def close(self) -> None:
        """Nothing to release."""
