"""The code of the documentation's pages, run as a reader would: block after block, in one namespace."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Kind (python, text) and content of every block of code and output."""
    return _BLOCK.findall(page.read_text())


def recipe(page: Path, word: str) -> str:
    """The block marked "py", which does not run as it is, that has this word."""
    (found,) = [
        code for code in re.findall(r"^```py\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE) if word in code
    ]
    return found


def run(page: Path) -> None:
    """Run every block of Python; a block of text below it is what it must have printed, numbers to within a tenth."""
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for kind, content in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as caught:
                exec(compile(content, page.name, "exec"), namespace)
            printed = caught.getvalue()
        else:
            assert _words(printed) == _words(content), f"{page.name} shows\n{content}but printed is\n{printed}"
            for seen, shown in zip(_NUMBER.findall(printed), _NUMBER.findall(content), strict=True):
                few = 0.11 if "." in shown else 2  # roundings and counts may differ a little between machines
                allowed = max(0.15 * abs(float(shown)), few)
                assert abs(float(seen) - float(shown)) <= allowed, f"{page.name} shows {shown}, printed is {seen}"


def _words(text: str) -> list[str]:
    return _NUMBER.sub("#", text).split()


@cache
def hooks() -> ModuleType:
    """docs/hooks.py, which generates pages of the site."""
    specification = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@cache
def generated() -> dict[str, str]:
    """Pages of the site that are generated: address → Markdown."""
    return dict(hooks().generated_pages())
