"""Progress of an evaluation. The command line draws bars; the library shows nothing."""

from __future__ import annotations


class Reporter:
    """Hears about every evaluation and every slice; this one shows nothing."""

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


class Silent(Reporter):
    """Keeps the sentences, shows nothing."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, sentence: str) -> None:
        """Keep it."""
        self.sentences.append(sentence)
