"""The skeleton of a page: one file, nothing loaded from elsewhere, light or dark as the reader likes it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from undertow.view import html
from undertow.view.html import element


def page(title: str, lead: str, body: str, script: str = "") -> str:
    """A whole page; `body` is HTML, the title and the lead are text, `script` the name of an asset."""
    header = element("h1", title), element("p", lead)
    code = asset(script) if script else ""
    return html.page(title, header, html.Html(body), style=asset("page.css"), script=code)


def bullets(title: str, sentences: Iterable[str]) -> str:
    """A heading and a list of sentences; nothing where there are none."""
    lines = [element("li", sentence) for sentence in sentences]
    return html.joined(element("h2", title), element("section", element("ul", lines))) if lines else ""


def asset(name: str) -> str:
    """A style sheet or script that is part of the package."""
    return (files("undertow.lab.pages") / "assets" / name).read_text(encoding="utf-8")


def image(path: Path, words: str) -> str:
    """A PNG inside the page itself; `words` for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return html.void("img", alt=words, src=f"data:image/png;base64,{data}")
