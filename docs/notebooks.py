"""The tutorials as notebooks: `make notebooks`. One source, so that both say the same and both run in the tests."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TUTORIALS = ("network-traffic", "video", "sensors")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)


def notebook(name: str) -> dict[str, Any]:
    """A tutorial as a notebook: its Python as cells, without the outputs, which running it makes."""
    text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text()
    cells: list[dict[str, Any]] = []
    position = 0
    for block in _BLOCK.finditer(text):
        if block[1] not in ("python", "text"):
            continue
        _add(cells, "markdown", _words(text[position : block.start()]))
        if block[1] == "python":
            _add(cells, "code", _shown(block[2]))
        position = block.end()
    _add(cells, "markdown", _words(text[position:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    if text.strip():
        cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": text.strip("\n")}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))


def _shown(code: str) -> str:
    """A notebook shows a figure; it need not be saved."""
    return re.sub(r"\.savefig\([^)]*\)", "", code)


def _words(text: str) -> str:
    """Without the pictures, which the cells make; links lead to the pages of the repository."""
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^!!! (\w+)\n((?:    .*\n?)+)", _quoted, text, flags=re.MULTILINE)
    return re.sub(r"\]\((?!https?:)([^)]+)\)", lambda link: f"]({_from_notebooks(link[1])})", text)


def _quoted(box: re.Match[str]) -> str:
    """A box of the site, which notebooks do not have."""
    lines = "".join(f"> {line.strip()}\n" for line in box[2].splitlines())
    return f"> **{box[1].capitalize()}**\n>\n{lines}"


def _from_notebooks(target: str) -> str:
    return f"../docs/{target.removeprefix('../')}" if target.startswith("../") else f"../docs/tutorials/{target}"


def written(name: str) -> str:
    """The content of its file."""
    return json.dumps(notebook(name), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    folder = ROOT / "notebooks"
    folder.mkdir(exist_ok=True)
    for name in TUTORIALS:
        (folder / f"{name}.ipynb").write_text(written(name))
        print(folder / f"{name}.ipynb", file=sys.stderr)
