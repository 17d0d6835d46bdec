"""Who wins which row, and by how much: from the board to what people want to know first."""

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
        return f"{self.label} · tuned" if self.kind == "tuned" else self.label


def columns(board: Board) -> list[Column]:
    """All columns in the order of the methods, tuned ones right of the published ones."""
    found = []
    for method in board["methods"]:
        kinds = {kind for row in board["rows"] for kind in row["entries"].get(method["name"], {})}
        for kind in ("default", "published", "tuned"):
            if kind in kinds:
                found.append(Column(method["name"], kind, method["label"], method["family"]))
    return found


def score(row: dict[str, Any], column: Column, figure: str) -> float | None:
    """One number of the board; None where there is none."""
    entry = row["entries"].get(column.method, {}).get(column.kind)
    if entry is None or entry["status"] != "ok":
        return None
    value = entry["scores"].get(figure)
    return None if value is None else float(value)


def distance(value: float, better: str) -> float:
    """How far from perfect: smaller is better, whatever the figure."""
    if better == "low":
        return value
    if better == "high":
        return -value
    return abs(value - float(better))


def winner(board: Board, row: dict[str, Any], figure: str) -> Column | None:
    """The best column of a row by a figure."""
    better = board["figures"][figure]["better"]
    if better == "none":
        return None
    ranked = [
        (distance(value, better), place, column)
        for place, column in enumerate(columns(board))
        if (value := score(row, column, figure)) is not None
    ]
    return min(ranked)[2] if ranked else None


def ratios(board: Board, column: Column) -> Iterator[float]:
    """Its error over the best error of the row, for every row that it finished."""
    everyone = columns(board)
    for row in board["rows"]:
        figure = row["judged_by"]
        if figure is None or (own := score(row, column, figure)) is None:
            continue
        best = min(value for other in everyone if (value := score(row, other, figure)) is not None)
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
        won = sum(winner(board, row, row["judged_by"]) == column for row in board["rows"] if row["judged_by"])
        speeds = [value for row in board["rows"] if (value := score(row, column, "speed")) is not None]
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
