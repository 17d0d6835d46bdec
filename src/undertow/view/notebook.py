"""Models, results and statuses in a notebook: small pieces of HTML that need nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from undertow.view.drawing import ACCENT, DEEP, SHARES, SOFT
from undertow.view.html import Html, element, joined

_BOX = "font-family:'DejaVu Sans',Verdana,system-ui,sans-serif;font-size:13px;line-height:1.5;max-width:640px"


def box(title: str, *parts: str) -> str:
    """All that is shown of one thing."""
    return element("div", element("b", title), joined(*parts), style=_BOX)


def status(one: Any) -> Html:
    """A coloured dot, the codes and what to do."""
    colour = "#3a7d44" if one.ok else ACCENT
    dot = element("span", "●", style=f"color:{colour}")
    codes = ", ".join(one.codes) or "ok"
    advice = (element("li", sentence) for sentence in one.advice)
    return element("div", dot, f" {codes}", element("ul", advice, style="margin:2px 0") if one.advice else "")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values."""
    cells = (
        element("span", element("span", f"{name} ", style=f"color:{SOFT}"), value, style="margin-right:18px")
        for name, value in pairs
    )
    return element("div", cells)


def weights(shares: Mapping[str, float]) -> Html:
    """One bar in pieces, and whose they are."""
    colours = dict(zip(shares, SHARES * (len(shares) // len(SHARES) + 1), strict=False))
    pieces = (
        element("span", style=f"display:inline-block;height:10px;width:{100 * share:.1f}%;background:{colours[name]}")
        for name, share in shares.items()
        if share > 0
    )
    key = (
        element("span", _square(colours[name]), f"{name.replace('_', ' ')} {share:.0%}", style="margin-right:12px")
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= 0.01
    )
    bar = element("div", pieces, style="white-space:nowrap;font-size:0")
    return element("div", bar, element("div", key, style="font-size:12px"))


def _square(colour: str) -> Html:
    return element("span", "■ ", style=f"color:{colour}")


def lines(sentences: Iterable[str]) -> Html:
    """A list."""
    return element("ul", (element("li", sentence) for sentence in sentences), style=f"margin:4px 0;color:{DEEP}")
