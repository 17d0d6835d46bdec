"""Names on the command line become entries of a registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


def pick(kind: str, names: Iterable[str] | None, known: Mapping[str, Entry]) -> list[Entry]:
    """The entries of these names in their order, each once; without names, all of them.

    Args:
        kind: what they are, for the message.
        names: what is wanted; None for everything.
        known: what there is.

    Raises:
        ValueError: a name is not known; the message lists the known ones.

    Example:
        >>> pick("colour", ["red", "red"], {"red": 1, "blue": 2})
        [1]
    """
    wanted = list(known) if names is None else list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ValueError(f"unknown {kind} {', '.join(unknown) or '(none)'}: choose from {', '.join(known)}")
    return [known[name] for name in wanted]


def separated(names: str | None) -> list[str] | None:
    """A comma-separated list, taken apart."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
