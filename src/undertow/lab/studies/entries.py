"""Columns of a study: methods with settings, and one method with and without a setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A column of the table: a method with settings.

    Attributes:
        method: its name.
        settings: given to it.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For the heading."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.settings.items())])


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings from "name=value" texts; a value is JSON where it can be read as such, else text.

    Example:
        >>> settings_of(["preset=fast", "max_rank=8", "level=false"])
        {'preset': 'fast', 'max_rank': 8, 'level': False}
    """
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise ValueError(f"a setting must be name=value, got {pair!r}: write for example max_rank=8")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def variants(given: Entry, replacements: Sequence[str]) -> list[Entry]:
    """An entry as given, then once for every replacement, "name=value" or several joined by "+"."""
    if not replacements:
        raise ValueError("an ablation needs at least one replacement, got none: add for example --replace robust=false")
    replaced = ({**given.settings, **settings_of(one.split("+"))} for one in replacements)
    return [given, *(Entry(given.method, settings) for settings in replaced)]


def entries(methods: Sequence[str], pairs: Sequence[str]) -> list[Entry]:
    """Methods with settings: "name=value" for all of them, "method.name=value" for one."""
    given = settings_of(pairs)
    return [
        Entry(
            method,
            {
                name.removeprefix(f"{method}."): value
                for name, value in given.items()
                if "." not in name or name.startswith(f"{method}.")
            },
        )
        for method in methods
    ]
