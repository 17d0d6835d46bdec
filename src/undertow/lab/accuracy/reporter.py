"""Who is told how far a run has come. The command line draws bars; the library says nothing."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Told about every cell and every slice."""

    def begin(self, cells: int) -> None:
        """So many cells are ahead."""

    def cell(self, label: str, slices: int) -> None:
        """A cell begins."""

    def tick(self) -> None:
        """One more slice of it is done."""

    def done(self) -> None:
        """One more cell is done, computed or found."""

    def say(self, sentence: str) -> None:
        """Something a person should know."""


class Silent:
    """Keeps the sentences, shows nothing."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def begin(self, cells: int) -> None:
        """Nothing."""

    def cell(self, label: str, slices: int) -> None:
        """Nothing."""

    def tick(self) -> None:
        """Nothing."""

    def done(self) -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        """Keep it."""
        self.sentences.append(sentence)
