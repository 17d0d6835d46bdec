"""The page of the scoreboard: which method is best on which row, by how much, at what cost, under which rules."""

from __future__ import annotations

from html import escape
from pathlib import Path

from undertow.lab.pages.drawing import COLOURS, canvas, save
from undertow.lab.pages.heat_map import heat_map
from undertow.lab.pages.page import bullets, image, page
from undertow.lab.scoreboard.ranking import Board, Standing, columns, standings, value_of
from undertow.lab.store import write_text

_RULES = (
    "Every method sees the same slices with the same entries hidden and corrupted, one slice after the other; BRTF "
    "alone is given the whole stream together, future included.",
    "The error is that of the low-rank part L, ‖L − truth‖ / ‖truth‖ per slice, averaged over the slices after the "
    "burn-in (RAE). The truth is the generated low rank, or the recording before entries were hidden and corrupted. "
    "A sparse part is never added to L: it is free on every shown entry and would measure nothing.",
    "A row is decided by hidden entries. Where nothing is hidden it is decided by all entries against a truth that was "
    "not shown; for a complete, clean recording only the prediction of each slice before it is seen means anything.",
    "Baselines are offered the true rank of a generated stream. Undertow runs with its defaults on all rows; it is "
    "never tuned. Baselines have two columns: published settings, and the best of a small grid of ranks, scales "
    "(linear, square root, asinh) and a few settings of their own, in hindsight: chosen by the very error that decides "
    "the row. No user could choose so; it flatters the baseline, and it is this column that Undertow is held against.",
    "The paper's model is offered the true rank and has two columns: six iterations a slice, where its authors' code "
    "stops, and converged.",
    "Methods with absolute settings get the data divided by the mean size of the first slice.",
    "Outlier F1 and foreground F: Undertow at probability ½, methods without probabilities at the threshold that is "
    "best in hindsight, which no user could choose.",
    "Times are medians per slice without compilation, in units of one 512×512 double-precision matrix product timed "
    "beside each run on the same machine.",
)


def write_page(board: Board, out: Path) -> Path:
    """Write `scoreboard.html` beside the numbers."""
    ranked = standings(board)
    parts = []
    if ranked:
        picture = out / "accuracy-and-time.png"
        draw_trade(ranked, picture)
        parts.append(
            '<h2>Standings</h2><section class="two">'
            f"{_bars(ranked)}<div>{image(picture, 'typical error against time of every method')}</div></section>"
        )
    parts.append(_boards(board))
    parts.append(_left_out(board))
    parts.append(bullets("The rules", _RULES))
    parts.append(_chosen(board))
    parts.append(
        f"<footer>Undertow {escape(board['version'])}. Point at a number to see its settings and its standard "
        "deviation over seeds.</footer>"
    )
    rows = len(board["rows"])
    short = " This is a quick run: short streams, cropped pictures, few rows." if board["quick"] else ""
    seeds = "1 seed" if board["seeds"] == 1 else f"{board['seeds']} seeds"
    lead = (
        f"{len(board['methods'])} methods on {rows} rows, {seeds} each, the same data and the same mask for all.{short}"
    )
    target = out / "scoreboard.html"
    write_text(target, page("Scoreboard", lead, "".join(parts), "scoreboard.js"))
    return target


def draw_trade(ranked: list[Standing], path: Path) -> None:
    """Typical error against time: the lower left is where one wants to be."""
    figure, axes = canvas(6.4, 4.3)
    for standing in ranked:
        family = standing.column.family
        hollow = standing.column.kind == "hindsight"
        axes.scatter(
            standing.speed,
            standing.typical,
            s=150 if family == "undertow" else 70,
            marker="*" if family == "undertow" else "o",
            facecolor="white" if hollow else COLOURS[family],
            edgecolor=COLOURS[family],
            zorder=3,
        )
        if not hollow:
            axes.annotate(
                standing.column.label,
                (standing.speed, standing.typical),
                xytext=(6, 5),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("time per slice, in 512×512 matrix products (median)")
    axes.set_ylabel("error over the row's best (median)")
    axes.set_title("Accuracy and time (hollow: in hindsight)", fontsize=11)
    save(figure, path)


def _bars(ranked: list[Standing]) -> str:
    most = max(standing.rows for standing in ranked)
    lines = [
        f'<tr class="{standing.column.family}"><td>{escape(standing.column.title)}</td>'
        f'<td class="track"><div class="bar" style="width:{100 * standing.won / most:.1f}%"></div></td>'
        + "".join(f'<td class="number">{count}</td>' for count in (standing.won, standing.near, standing.rows))
        + f'<td class="number">{standing.typical:.2f}×</td><td class="number">{standing.worst:.3g}×</td></tr>'
        for standing in ranked
    ]
    return (
        '<div class="scroll"><table class="bars"><tr><th></th><th>rows won</th><th></th>'
        '<th class="number">within 5 %</th><th class="number">of</th><th class="number">typical</th>'
        f'<th class="number">worst</th></tr>{"".join(lines)}</table></div>'
    )


def _boards(board: Board) -> str:
    everyone = columns(board)
    shown = [
        name
        for name in board["scores"]
        if any(value_of(row, column, name) is not None for row in board["rows"] for column in everyone)
    ]
    buttons = ['<button class="on" data-figure="deciding">deciding error</button>']
    tables = [f'<div class="board on" data-figure="deciding">{_key("low")}{heat_map(board, None)}</div>']
    for name in shown:
        about = board["scores"][name]
        buttons.append(f'<button data-figure="{name}">{escape(about["title"])}</button>')
        tables.append(
            f'<div class="board" data-figure="{name}"><p class="lead">{escape(about["meaning"])}.</p>'
            f"{_key(about['better'])}{heat_map(board, name)}</div>"
        )
    return (
        "<h2>Every row</h2><p class='lead'>★ marks the winner of a row; the colour says how far the others are behind. "
        "The row names the score that decides it.</p>"
        f'<section class="wide"><div class="switch">{"".join(buttons)}</div>{"".join(tables)}</section>'
    )


def _key(better: str) -> str:
    if better == "none":
        return ""
    far = "ten times the best, or worse" if better == "low" else "30 % behind, or worse"
    return f'<div class="key">best <i></i> {far}</div>'


def _left_out(board: Board) -> str:
    """Why numbers are missing, once for every reason."""
    reasons: dict[str, set[str]] = {}
    labels = {method["name"]: method["label"] for method in board["methods"]}
    for row in board["rows"]:
        for name, entry in row["entries"].items():
            for column in entry.values():
                if column["status"] != "ok":
                    reasons.setdefault(column["reason"], set()).add(labels[name])
    return bullets("Left out", [f"{', '.join(sorted(names))}: {reason}" for reason, names in reasons.items()])


def _chosen(board: Board) -> str:
    lines = []
    for row in board["rows"]:
        for method in board["methods"]:
            entry = row["entries"].get(method["name"], {}).get("hindsight")
            if entry is not None and entry["status"] == "ok":
                settings = ", ".join(f"{name} {value}" for name, value in entry["settings"].items())
                lines.append(
                    f"<tr><td>{escape(row['title'])}, {escape(row['condition'])}</td>"
                    f"<td>{escape(method['label'])}</td><td>{escape(settings) or 'as published'}</td></tr>"
                )
    if not lines:
        return ""
    return (
        "<details><summary>Settings chosen in hindsight</summary><div class='scroll'><table><tr><th>row</th>"
        f"<th>method</th><th>settings</th></tr>{''.join(lines)}</table></div></details>"
    )
