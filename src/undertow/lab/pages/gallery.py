"""One page with all figures that were made so far."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from undertow.lab.figures.registry import FIGURES
from undertow.lab.pages.heat_map import digits
from undertow.lab.pages.page import image, page
from undertow.lab.scoreboard.ranking import distance
from undertow.lab.scores import SCORES, Score
from undertow.lab.store import write_text

_SHOWN = ("hidden_error", "all_error", "prediction_error", "outlier_f1", "psnr", "ssim", "coverage", "rank", "speed")
_LEAD = (
    "Every figure of the section “Numerical Results”, run again on equal terms: Undertow with its defaults, "
    "the paper's own model, the baselines with their published settings, and the naive methods that "
    "the paper leaves out."
)


def write_gallery(out: Path) -> Path:
    """Collect every figure in the folder, whichever run made it."""
    made = [
        json.loads((out / f"{name}.json").read_text())
        for name in FIGURES
        if (out / f"{name}.json").is_file() and (out / f"{name}.png").is_file()
    ]
    links = " ".join(f'<a href="#{figure["name"]}">{escape(figure["title"])}</a>' for figure in made)
    body = f"<nav>{links}</nav>" + "".join(_figure(figure, out) for figure in made)
    body += f"<footer>Undertow {escape(made[0]['version']) if made else ''}. Numbers beside this page as JSON.</footer>"
    target = out / "index.html"
    write_text(target, page("The paper's experiments", _LEAD, body))
    return target


def _figure(figure: dict[str, Any], out: Path) -> str:
    quick = f" {escape(figure['shortened'])}" if figure["quick"] else ""
    seeds = "1 seed" if figure["seeds"] == 1 else f"mean of {figure['seeds']} seeds, shaded: their range"
    tables, done = [], set()
    for panel in figure["panels"]:
        case = (panel["dataset"], panel["condition"])
        if case not in done:  # two panels may show two curves of one case
            done.add(case)
            tables.append(_table(panel))
    return (
        f'<h2 id="{figure["name"]}">{escape(figure["title"])}<span class="aside">{seeds}</span></h2>'
        f'<p class="lead">{escape(figure["caption"])}{quick}</p><section>'
        f"{image(out / (figure['name'] + '.png'), figure['caption'])}"
        f'<div class="tables">{"".join(tables)}</div>'
        f'<p class="note"><b>Where this differs.</b> {escape(figure["differs"])}</p></section>'
    )


def _table(panel: dict[str, Any]) -> str:
    methods = panel["methods"]
    shown = [name for name in _SHOWN if any(m["scores"].get(name) is not None for m in methods.values())]
    heads = "".join(
        f'<th class="number" title="{escape(SCORES[name].meaning)}">{escape(SCORES[name].title)}</th>' for name in shown
    )
    best = {name: _best(methods, name) for name in shown}
    lines = "".join(
        f'<tr class="{method["family"]}"><td>{escape(method["label"])}</td>'
        + "".join(_number(method["scores"].get(name), SCORES[name], key == best[name]) for name in shown)
        + "</tr>"
        for key, method in methods.items()
    )
    sizes = "×".join(map(str, panel["shape"])) if panel["shape"] else ""
    name = panel["dataset"].replace("_", " ")
    return (
        f'<div class="scroll"><table><tr><th>{escape(name)} {sizes}, {escape(panel["condition"])}</th>{heads}</tr>'
        f"{lines}</table></div>"
    )


def _best(methods: dict[str, Any], name: str) -> str | None:
    better = SCORES[name].better
    if better == "none" or name == "speed":
        return None
    found = {key: value for key, method in methods.items() if (value := method["scores"].get(name)) is not None}
    return min(found, key=lambda key: distance(found[key], better)) if len(found) > 1 else None


def _number(value: float | None, score: Score, best: bool) -> str:
    if value is None:
        return '<td class="number">–</td>'
    mark = " best" if best else ""
    return f'<td class="number{mark}">{digits(value, score.digits)}</td>'
