"""Results published to a broker: a message per slice, acknowledged by the broker before a checkpoint is written.

A slice that was published before we died and is computed again after the resume has the same key and the same number:
JetStream leaves out a key that it knows (for as long as its window of duplicates is), other readers know the number.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.runs.errors import RunError
from undertow.sources.base import Item, StreamError
from undertow.sources.brokers.base import Address, is_address, shown
from undertow.sources.brokers.publishing import Publisher, publisher

KNOWN = frozenset({"keep"})
PATIENCE = 60.0
"""Seconds that a checkpoint waits for a broker that is away."""


class ResultSink:
    """Publishes the numbers, the alerts and, where asked for, arrays of every slice.

    Args:
        address: ``nats://host/subject`` or ``kafka://host/topic``; what follows a question mark is left to `asked`.
        keep: Names of the arrays.
        stream: Name of the stream.
        fingerprint: Of its source.
    """

    def __init__(self, address: str, keep: Sequence[str], stream: str, fingerprint: str) -> None:
        self._keep = tuple(keep)
        try:
            self._publisher: Publisher = publisher(address.partition("?")[0])
        except StreamError as error:
            raise RunError(str(error)) from error
        self._stream, self._fingerprint = stream, fingerprint[:16]

    def add(self, index: int, item: Item, result: Any, numbers: dict[str, Any], flagged: NDArray[np.bool_]) -> None:
        """On its way; `flush` waits until it has arrived."""
        places = np.argwhere(flagged)
        at = tuple(places.T)
        message = {
            "stream": self._stream,
            "slice": index,
            "time": None if item.time is None else str(item.time),
            **{name: _plain(value) for name, value in numbers.items() if not isinstance(value, np.ndarray)},
            "alerts": [
                {"entry": place, "value": value, "expected": mean, "probability": probability}
                for place, value, mean, probability in zip(
                    places.tolist(),
                    _listed(item.values[at]),
                    _listed(np.asarray(result.mean)[at]),
                    _listed(np.asarray(result.outlier_probability)[at]),
                    strict=True,
                )
            ],
            **{name: _listed(getattr(result, name)) for name in self._keep},
        }
        body = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
        try:
            self._publisher.put(f"{self._fingerprint}-{index}", body)
        except StreamError as error:
            raise RunError(f"slice {index} could not be published: {error}") from None

    def flush(self) -> None:
        """Until the broker has all of it.

        Raises:
            RunError: It does not take them.
        """
        end = time.monotonic() + PATIENCE
        left = self._publisher.flush(lambda: time.monotonic() < end)
        if left:
            why = f" ({self._publisher.failure})" if self._publisher.failure else ""
            name = self._publisher.name
            raise RunError(f"{left} results could not be published to {name}{why}: mend it, continue with --resume")

    def close(self) -> None:
        """End the connection."""
        self._publisher.close()


def asked(address: str) -> str:
    """The arrays that are to be published, as the address has them.

    Raises:
        RunError: It is no address of a broker.
    """
    if not is_address(address):
        raise RunError(f"publish must be nats://host/subject or kafka://host/topic, got {shown(address)!r}")
    try:
        return Address.parse(address, KNOWN, "nats://host/subject").options.get("keep", "none")
    except StreamError as error:
        raise RunError(str(error)) from None


def _listed(array: Any) -> Any:
    """Nested lists; null for what is not finite, which JSON does not know."""
    found = np.asarray(array, np.float64)
    known = found.astype(object)
    known[~np.isfinite(found)] = None
    return known.tolist()


def _plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
