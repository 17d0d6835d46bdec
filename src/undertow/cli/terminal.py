"""Text from files on its way to a terminal: control codes are shown, not sent."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: object) -> str:
    r"""The text with control characters written out; a label cannot clear the screen, hide text or name the window.

    Control codes (C0 except line feed and tab, DEL, C1), marks that change the direction of text, and lone surrogates.

    Example:
        >>> printable("\x1b[31mnorth\x07")
        '\\x1b[31mnorth\\x07'
    """
    return "".join(letter.encode("unicode_escape").decode() if _is_control(letter) else letter for letter in str(text))


def literal(text: object) -> str:
    r"""`printable` for a `rich` console, which takes words in brackets for markup.

    Example:
        >>> print(literal("[red]\x1b[2J"))
        \[red]\x1b[2J
    """
    from rich.markup import escape  # here: messages are printed without it

    return escape(printable(text))


def show_file(console: Console, what: str, path: object) -> None:
    """One line that says where a file went, in one piece however narrow the terminal is."""
    console.print(f"{what + ':':8} [bold]{literal(path)}[/]", highlight=False, soft_wrap=True)


def _is_control(letter: str) -> bool:
    if letter in "\n\t" or " " <= letter <= "~":
        return False
    direction = "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return direction or unicodedata.category(letter) in ("Cc", "Cs")
