"""A heat map as an HTML table: every row coloured by the distance to its own best, winners marked."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from undertow.lab.scoreboard.ranking import Board, Column, columns, distance, value_of, winner

_STOPS = ((22, 112, 101), (130, 184, 141), (243, 233, 189), (232, 165, 110), (196, 78, 58))
_FARTHEST = 10.0  # times the best: the red end


_DECIDES = {"hidden_error": "hidden", "all_error": "all entries", "prediction_error": "next slice"}


def heat_map(board: Board, score: str | None) -> str:
    """The table of one score; None for the error that decides each row."""
    everyone = [column for column in columns(board) if any(value_of(row, column, "speed") for row in board["rows"])]
    heads = "".join(f'<th class="name {column.family}"><div>{escape(column.title)}</div></th>' for column in everyone)
    lines, last = [], None
    for row in board["rows"]:
        shown = row["decided_by"] if score is None else score
        if shown is None or all(value_of(row, column, shown) is None for column in everyone):
            continue
        best = winner(board, row, shown)
        cells = "".join(_cell(board, row, column, shown, best) for column in everyone)
        first = ' class="first"' if row["dataset"] != last else ""
        last = row["dataset"]
        lines.append(f"<tr{first}>{_heading(row, shown, score is None, bool(first))}{cells}</tr>")
    corner = "<th></th>" * (3 if score is None else 2)
    return f'<div class="scroll"><table class="heat"><tr>{corner}{heads}</tr>{"".join(lines)}</table></div>'


def _heading(row: dict[str, Any], shown: str, decides: bool, first: bool) -> str:
    """The data set, once, then condition and deciding score."""
    sizes = f" <span>{'×'.join(map(str, row['shape']))}</span>" if row["shape"] else ""
    title = f"{escape(row['title'])}{sizes}" if first else ""
    by = f'<td class="row"><span>{escape(_DECIDES.get(shown, shown))}</span></td>' if decides else ""
    return f'<td class="row">{title}</td><td class="row">{escape(row["condition"])}</td>{by}'


def colour(distance: float) -> str:
    """0 = best, 1 = as far as it goes."""
    position = min(max(distance, 0.0), 1.0) * (len(_STOPS) - 1)
    low = min(int(position), len(_STOPS) - 2)
    mixed = [round(a + (b - a) * (position - low)) for a, b in zip(_STOPS[low], _STOPS[low + 1], strict=True)]
    return "rgb({},{},{})".format(*mixed)


def _cell(board: Board, row: dict[str, Any], column: Column, score: str, best: Column | None) -> str:
    value = value_of(row, column, score)
    about = board["scores"][score]
    if value is None:
        entry = row["entries"].get(column.method, {}).get(column.kind) or {}
        return f'<td class="none" title="{escape(entry.get("reason") or "does not apply")}">–</td>'
    entry = row["entries"][column.method][column.kind]
    deviation = entry["deviations"].get(score)
    details = [column.title, f"{value:.4g}" + (f" ± {deviation:.2g}" if deviation is not None else "")]
    details += [f"{name} = {setting}" for name, setting in entry["settings"].items()]
    details += entry["flagged"]
    title = escape("\n".join(details), quote=True)
    if best is None:
        return f'<td title="{title}">{digits(value, about["digits"])}</td>'
    reference = value_of(row, best, score)
    behind = _behind(value, value if reference is None else reference, about["better"])
    ink = "#fff" if behind < 0.2 or behind > 0.85 else "#17212b"
    mark = ' class="win"' if column == best else ""
    return (
        f'<td{mark} style="background:{colour(behind)};color:{ink}" title="{title}">'
        f"{digits(value, about['digits'])}</td>"
    )


def _behind(value: float, best: float, better: str) -> float:
    """From 0 for the best to 1 for the farthest: errors by their ratio, other scores by their difference."""
    if better == "low":
        if value <= best:
            return 0.0
        return 1.0 if best <= 0 else math.log(value / best) / math.log(_FARTHEST)
    gap = distance(value, better) - distance(best, better)
    return gap / (0.3 * max(abs(best), 1e-9))


def digits(value: float, decimals: int) -> str:
    """A number as a table shows it: that many decimals, one significant digit of what is smaller."""
    if value != 0 and abs(value) < 10**-decimals:
        return f"{value:.1g}"
    return f"{value:.{decimals}f}" if abs(value) < 100 else f"{value:.3g}"
