"""The tutorials as notebooks with their outputs: `make notebooks`. One source, so that both say the same and both run
in the tests."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TUTORIALS = ("network-traffic", "video", "sensors")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)


def notebook(name: str) -> dict[str, Any]:
    """A tutorial as a notebook: its Python as cells, without the outputs, which `run` adds."""
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


def run(found: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells: what they print, and what their last line shows.

    Run in this process and the current folder: Jupyter is not needed to write notebooks.
    """
    namespace: dict[str, Any] = {"__name__": "notebook"}
    cells, count = [], 0
    for cell in found["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = cell | {"execution_count": count, "outputs": _outputs(cell["source"], namespace, count)}
        cells.append(cell)
    return found | {"cells": cells}


def _outputs(source: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Of one cell."""
    tree, shown = ast.parse(source), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    # What goes to the standard error, such as progress, is about this machine.
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "cell", "exec"), namespace)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if shown is not None:
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": _data(shown)}
        outputs.append(result)
    return outputs


def _data(shown: Any) -> dict[str, str]:
    """As notebooks show it: a picture, a table, or its representation."""
    if hasattr(shown, "_repr_png_"):
        return {"image/png": base64.b64encode(shown._repr_png_()).decode(), "text/plain": "<figure>"}
    html = {"text/html": shown._repr_html_()} if hasattr(shown, "_repr_html_") else {}
    return {"text/plain": repr(shown)} | html


def main() -> None:
    """Run all and write them."""
    folder = ROOT / "notebooks"
    folder.mkdir(exist_ok=True)
    for name in TUTORIALS:
        with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
            found = run(notebook(name))
        (folder / f"{name}.ipynb").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        print(folder / f"{name}.ipynb", file=sys.stderr)


if __name__ == "__main__":
    main()
