"""Progress of an evaluation. The command line draws bars; the library shows nothing."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Hears about every evaluation and every slice."""

    def begin(self, total: int) -> None:
        """The number of evaluations ahead."""

    def start(self, label: str, slices: int) -> None:
        """One of them begins."""

    def tick(self) -> None:
        """One more slice of it is done."""

    def done(self) -> None:
        """One more of them is done, computed or found."""

    def say(self, sentence: str) -> None:
        """Something a person should know."""


class Silent:
    """Keeps the sentences, shows nothing."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def begin(self, total: int) -> None:
        """Nothing."""

    def start(self, label: str, slices: int) -> None:
        """Nothing."""

    def tick(self) -> None:
        """Nothing."""

    def done(self) -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        """Keep it."""
        self.sentences.append(sentence)
