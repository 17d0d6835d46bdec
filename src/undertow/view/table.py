"""A small table: rows by the names of their columns; at home in notebooks and in pandas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from undertow.view import html

_SHOWN = 20


class Table(Sequence[dict[str, Any]]):
    """Rows as dictionaries with the same keys: `pandas.DataFrame(table)` takes it as it is.

    Args:
        columns: Their names.
        rows: One tuple each.

    Examples:
        >>> table = Table(("mode", "share"), [("src", 0.25), ("dst", 0.5)])
        >>> table[1]["share"], table.column("mode")
        (0.5, ['src', 'dst'])
        >>> print(table)
        mode  share
        src   0.25
        dst   0.5
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self._rows = [dict(zip(self.columns, row, strict=True)) for row in rows]

    def column(self, name: str) -> list[Any]:
        """One column."""
        return [row[name] for row in self._rows]

    def where(self, **values: Any) -> Table:
        """The rows that have these values."""
        kept = [row for row in self._rows if all(row[name] == value for name, value in values.items())]
        return Table(self.columns, [tuple(row.values()) for row in kept])

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(self._rows, columns=list(self.columns))

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """One row, or several."""
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __str__(self) -> str:
        cells = [self.columns, *([shown(value) for value in row.values()] for row in self._rows[:_SHOWN])]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        more = len(self) - _SHOWN
        return "\n".join([*lines, f"… {more} more rows"] if more > 0 else lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[shown(value) for value in row.values()] for row in self._rows[:_SHOWN]]
        numeric = [name for name in self.columns if self._rows and isinstance(self._rows[0][name], (int, float))]
        more = len(self) - _SHOWN
        note = html.element("p", f"… {more} more rows") if more > 0 else ""
        return html.element("div", html.table(self.columns, rows, numeric), note)


def shown(value: Any) -> str:
    """A cell as people write it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return str(value)
