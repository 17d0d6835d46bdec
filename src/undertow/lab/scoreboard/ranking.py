"""Which method is best on which row, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Board = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of the board: a method with one choice of settings."""

    method: str
    kind: str
    label: str
    family: str

    @property
    def title(self) -> str:
        """The label, with the settings where there are two columns."""
        return f"{self.label} · in hindsight" if self.kind == "hindsight" else self.label


def columns(board: Board) -> list[Column]:
    """All columns in the order of the methods, those in hindsight right of the published ones."""
    found = []
    for method in board["methods"]:
        kinds = {kind for row in board["rows"] for kind in row["entries"].get(method["name"], {})}
        for kind in ("default", "published", "hindsight"):
            if kind in kinds:
                found.append(Column(method["name"], kind, method["label"], method["family"]))
    return found


def value_of(row: dict[str, Any], column: Column, score: str) -> float | None:
    """One number of the board; None where there is none."""
    entry = row["entries"].get(column.method, {}).get(column.kind)
    if entry is None or entry["status"] != "ok":
        return None
    value = entry["scores"].get(score)
    return None if value is None else float(value)


def distance(value: float, better: str) -> float:
    """How far from perfect: smaller is better, whatever the score."""
    if better == "low":
        return value
    if better == "high":
        return -value
    return abs(value - float(better))


def winner(board: Board, row: dict[str, Any], score: str) -> Column | None:
    """The best column of a row by a score."""
    better = board["scores"][score]["better"]
    if better == "none":
        return None
    ranked = [
        (distance(value, better), position, column)
        for position, column in enumerate(columns(board))
        if (value := value_of(row, column, score)) is not None
    ]
    return min(ranked)[2] if ranked else None


def ratios(board: Board, column: Column) -> Iterator[float]:
    """Its error over the best error of the row, for every row that it finished."""
    everyone = columns(board)
    for row in board["rows"]:
        score = row["decided_by"]
        if score is None or (own := value_of(row, column, score)) is None:
            continue
        best = min(value for other in everyone if (value := value_of(row, other, score)) is not None)
        yield own / best if best > 0 else (1.0 if own == 0 else math.inf)


@dataclass(frozen=True)
class Standing:
    """How a column did over all rows.

    won      rows in which it is best
    near     rows in which its error is within 5 % of the best
    rows     rows that it finished
    typical  median over those rows of its error over the row's best
    worst    the largest of these ratios
    speed    median time of a slice, in matrix products
    """

    column: Column
    won: int
    near: int
    rows: int
    typical: float
    worst: float
    speed: float


def standings(board: Board) -> list[Standing]:
    """All columns, the most rows won first, then the smaller typical ratio."""
    found = []
    for column in columns(board):
        ratio = list(ratios(board, column))
        if not ratio:
            continue
        won = sum(winner(board, row, row["decided_by"]) == column for row in board["rows"] if row["decided_by"])
        speeds = [value for row in board["rows"] if (value := value_of(row, column, "speed")) is not None]
        found.append(
            Standing(
                column,
                won,
                sum(value <= 1.05 for value in ratio),
                len(ratio),
                float(np.median(ratio)),
                max(ratio),
                float(np.median(speeds)),
            )
        )
    return sorted(found, key=lambda standing: (-standing.won, standing.typical))
