"""Elements of a page. Plain text is escaped here, so that nothing in the data can become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Iterable[str]


def element(name: str, /, *content: Content, **attributes: object) -> Html:
    """One element; a trailing ``_`` of an attribute is dropped, other ``_`` become ``-``, None leaves it out.

    Example:
        >>> element("p", "1 < 2", element("b", "!"), class_="soft")
        '<p class="soft">1 &lt; 2<b>!</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{joined(*content)}</{name}>")


def void(name: str, /, **attributes: object) -> Html:
    """An element without content, such as img."""
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def joined(*content: Content) -> Html:
    """Texts and elements one after the other."""
    parts: list[str] = []
    for part in content:
        if isinstance(part, str):
            parts.append(part if isinstance(part, Html) else escape(part))
        else:
            parts.append(joined(*part))
    return Html("".join(parts))


def heading(level: int, title: str, aside: str = "", *more: Content) -> Html:
    """A heading with a remark beside it."""
    return element(f"h{level}", title, element("span", aside, class_="aside") if aside else "", *more)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[str] = ()) -> Html:
    """A table; the columns in ``numeric`` are set as numbers."""
    kinds = ["number" if name in set(numeric) else None for name in head]

    def cells(kind: str, texts: Sequence[str]) -> Html:
        return element("tr", (element(kind, text, class_=style) for text, style in zip(texts, kinds, strict=True)))

    return element("table", element("thead", cells("th", head)), element("tbody", (cells("td", row) for row in rows)))


def page(title: str, header: Content, main: Content, *, style: str, script: str = "", footer: str = "") -> Html:
    """A self-contained page.

    Args:
        title: of the window.
        header: what is above everything else.
        main: the sections.
        style: a style sheet.
        script: a program in JavaScript.
        footer: one last sentence.
    """
    head = element(
        "head",
        void("meta", charset="utf-8"),
        element("title", title),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("style", Html(style)),
    )
    body = element(
        "body",
        element("header", element("div", header, class_="inner")),
        element("main", main),
        element("footer", footer) if footer else "",
        element("script", Html(script)) if script else "",
    )
    return Html(f"<!doctype html>{element('html', head, body, lang='en')}\n")
