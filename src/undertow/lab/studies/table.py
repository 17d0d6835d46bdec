"""What a study shows: a table of text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class StudyTable:
    """A table for people.

    Attributes:
        title: above it.
        headings: of the columns; the first column is text, the others are numbers.
        rows: one text per heading.
    """

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)


def mean(values: list[float | None], form: str = ".4f") -> str:
    """The mean of what there is, as text; a dash where there is nothing."""
    known = [value for value in values if value is not None]
    return format(np.mean(known), form) if known else "–"
