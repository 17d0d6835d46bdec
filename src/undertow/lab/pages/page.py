"""The skeleton of a page: one file, nothing loaded from elsewhere, light or dark as the reader likes it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path


def page(title: str, lead: str, body: str, script: str = "") -> str:
    """A whole page; `body` is HTML, the title and the lead are text, `script` the name of an asset."""
    style, code = asset("page.css"), asset(script) if script else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body>"
        f'<header><div class="inner"><h1>{escape(title)}</h1><p>{escape(lead)}</p></div></header>'
        f"<main>{body}</main><script>{code}</script></body></html>\n"
    )


def bullets(title: str, sentences: Iterable[str]) -> str:
    """A heading and a list of sentences; nothing where there are none."""
    lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<h2>{escape(title)}</h2><section><ul>{lines}</ul></section>" if lines else ""


def asset(name: str) -> str:
    """A style sheet or script that is part of the package."""
    return (files("undertow.lab.pages") / "assets" / name).read_text(encoding="utf-8")


def image(path: Path, words: str) -> str:
    """A PNG inside the page itself; `words` for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'
