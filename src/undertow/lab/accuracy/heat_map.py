"""A heat map as an HTML table: every row coloured by the distance to its own best, winners marked."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from undertow.lab.accuracy.ranking import Board, Column, columns, distance, score, winner

_STOPS = ((22, 112, 101), (130, 184, 141), (243, 233, 189), (232, 165, 110), (196, 78, 58))
_FARTHEST = 10.0  # times the best: the red end


_DECIDES = {"hidden_error": "hidden", "all_error": "all entries", "prediction_error": "next slice"}


def heat_map(board: Board, figure: str | None) -> str:
    """The table of one figure; None for the error by which every row is judged."""
    everyone = [column for column in columns(board) if any(score(row, column, "speed") for row in board["rows"])]
    heads = "".join(f'<th class="name {column.family}"><div>{escape(column.title)}</div></th>' for column in everyone)
    lines, last = [], None
    for row in board["rows"]:
        shown = row["judged_by"] if figure is None else figure
        if shown is None or all(score(row, column, shown) is None for column in everyone):
            continue
        best = winner(board, row, shown)
        cells = "".join(_cell(board, row, column, shown, best) for column in everyone)
        first = ' class="first"' if row["stream"] != last else ""
        last = row["stream"]
        lines.append(f"<tr{first}>{_heading(row, shown, figure is None, bool(first))}{cells}</tr>")
    corner = "<th></th>" * (3 if figure is None else 2)
    return f'<div class="scroll"><table class="heat"><tr>{corner}{heads}</tr>{"".join(lines)}</table></div>'


def _heading(row: dict[str, Any], shown: str, decides: bool, first: bool) -> str:
    """The stream, once, then condition and deciding figure."""
    sizes = f" <span>{'×'.join(map(str, row['shape']))}</span>" if row["shape"] else ""
    stream = f"{escape(row['title'])}{sizes}" if first else ""
    by = f'<td class="row"><span>{escape(_DECIDES.get(shown, shown))}</span></td>' if decides else ""
    return f'<td class="row">{stream}</td><td class="row">{escape(row["condition"])}</td>{by}'


def colour(share: float) -> str:
    """0 = best, 1 = as far as it goes."""
    place = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    low = min(int(place), len(_STOPS) - 2)
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(_STOPS[low], _STOPS[low + 1], strict=True)]
    return "rgb({},{},{})".format(*mixed)


def _cell(board: Board, row: dict[str, Any], column: Column, figure: str, best: Column | None) -> str:
    value = score(row, column, figure)
    about = board["figures"][figure]
    if value is None:
        entry = row["entries"].get(column.method, {}).get(column.kind) or {}
        return f'<td class="none" title="{escape(entry.get("reason") or "does not apply")}">–</td>'
    entry = row["entries"][column.method][column.kind]
    spread = entry["spread"].get(figure)
    details = [column.title, f"{value:.4g}" + (f" ± {spread:.2g}" if spread is not None else "")]
    details += [f"{name} = {setting}" for name, setting in entry["settings"].items()]
    details += entry["troubles"]
    title = escape("\n".join(details), quote=True)
    if best is None:
        return f'<td title="{title}">{digits(value, about["digits"])}</td>'
    reference = score(row, best, figure)
    share = _share(value, value if reference is None else reference, about["better"])
    ink = "#fff" if share < 0.2 or share > 0.85 else "#17212b"
    mark = ' class="win"' if column == best else ""
    return (
        f'<td{mark} style="background:{colour(share)};color:{ink}" title="{title}">'
        f"{digits(value, about['digits'])}</td>"
    )


def _share(value: float, best: float, better: str) -> float:
    """From 0 for the best to 1 for the farthest: errors by their ratio, other figures by their difference."""
    if better == "low":
        if value <= best:
            return 0.0
        return 1.0 if best <= 0 else math.log(value / best) / math.log(_FARTHEST)
    gap = distance(value, better) - distance(best, better)
    return gap / (0.3 * max(abs(best), 1e-9))


def digits(value: float, places: int) -> str:
    """A number as a table shows it: so many decimals, one significant digit of what is smaller."""
    if value != 0 and abs(value) < 10**-places:
        return f"{value:.1g}"
    return f"{value:.{places}f}" if abs(value) < 100 else f"{value:.3g}"
