"""Cells of CSV files that spreadsheets would take for formulas, made harmless by an apostrophe in front."""

from __future__ import annotations

from typing import Any

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_safe(cell: Any) -> Any:
    """Text that a spreadsheet would run as a formula with an apostrophe in front; numbers and other text as they are.

    Example:
        >>> spreadsheet_safe("=1+1"), spreadsheet_safe("north"), spreadsheet_safe(-1.5)
        ("'=1+1", 'north', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def without_apostrophe(cell: str) -> str:
    """What `spreadsheet_safe` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULAS) else cell
