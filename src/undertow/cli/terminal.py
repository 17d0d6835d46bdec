"""Text from files on its way to a terminal: control codes are shown, not sent."""

from __future__ import annotations

import unicodedata


def printable(text: object) -> str:
    r"""The text with control characters written out; a label cannot clear the screen, hide text or name the window.

    Control codes (C0 except line feed and tab, DEL, C1), marks that change the direction of text, and lone surrogates.

    Example:
        >>> printable("\x1b[31mnorth\x07")
        '\\x1b[31mnorth\\x07'
    """
    return "".join(letter.encode("unicode_escape").decode() if _is_control(letter) else letter for letter in str(text))


def _is_control(letter: str) -> bool:
    if letter in "\n\t" or " " <= letter <= "~":
        return False
    direction = "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return direction or unicodedata.category(letter) in ("Cc", "Cs")
