"""What a source has given so far, as a digest in its positions: resuming tells the same data from other data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from undertow.sources.base import JSON, StreamError

RESEND = (
    "send the same data again from its beginning, or use --new-data (new_data=True) beside --resume if everything in "
    "it is new"
)


class RunningDigest:
    """Running digest over everything before a position, and the digest after the first slice alone.

    The first one is compared as soon as it is there: a pipe with other data is refused at its first slice, not once it
    has brought as much as was read before.

    Args:
        name: of the source.
        position: to resume from; None for the beginning.
        is_pipe: whether everything before the position has to be sent again.
    """

    def __init__(self, name: str, position: Mapping[str, JSON] | None, *, is_pipe: bool) -> None:
        self._name, self._is_pipe = name, is_pipe
        self._expected, self._expected_first = ((position or {}).get(key) for key in ("digest", "first"))
        self._hash = hashlib.sha256()
        self._first: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the position to resume from holds a digest; those of earlier versions do not."""
        return isinstance(self._expected, str)

    def add(self, *parts: bytes) -> None:
        """One more slice."""
        for part in parts:
            self._hash.update(part)
        if self._first is None:
            self._first = self._digest()
            if self.is_known and self._first != self._expected_first:
                raise self.other_data()

    def marks(self) -> dict[str, JSON]:
        """What goes into the position after the newest slice."""
        return {"digest": self._digest(), "first": self._first}

    def check(self) -> None:
        """Refuse other data; to be called where the position lies."""
        if self._digest() != self._expected:
            raise self.other_data()

    def other_data(self) -> StreamError:
        """The error for a source whose earlier part is not what it was."""
        if self._is_pipe:
            return StreamError(f"{self._name} brings other data than what was read from it before: {RESEND}")
        return StreamError(
            f"{self._name} holds other values than before in the part that was already read: put the earlier content "
            "back, or start again with --overwrite"
        )

    def ended_early(self) -> StreamError:
        """The error for a source that holds less than was read before."""
        remedy = RESEND if self._is_pipe else "put the earlier content back, or start again with --overwrite"
        return StreamError(f"{self._name} ended before the position to resume from: {remedy}")

    def unchecked(self) -> str:
        """The notice for a position of an earlier version."""
        return (
            f"what was read of {self._name} before could not be compared with what it holds now: the checkpoint was "
            "written by an earlier version"
        )

    def _digest(self) -> str:
        return self._hash.copy().hexdigest()
