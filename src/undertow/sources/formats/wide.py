"""Wide tables in files, one row per time and one column per entry; and what columns hold where nobody has said it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import MAX_LOADED_BYTES, import_extra, left_out
from undertow.sources.formats.base import Source
from undertow.sources.formats.frames import columns_found, open_frame
from undertow.sources.formats.lines import LineFile
from undertow.sources.formats.rows import check_number_of_columns
from undertow.sources.options import SourceOptions

DATES: tuple[str, ...] = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
)
"""How dates are written beside ISO 8601, where day and month cannot be confused."""
_SLASHED = re.compile(rb"(?<![\d/])(\d{1,2})/(\d{1,2})/\d{4}(?![\d/])")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(?P<zone>\s?(Z|[+-]\d\d:?\d\d))?")
_VALUE = re.compile(r"\d+[.,]\d+|\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d{4}.*")
_FRACTION = re.compile(r"\s*[+-]?\d*,\d+\s*")
_OFFSET = re.compile(r"\d([+-]\d\d):?(\d\d)\s*$")


def delimiter_of(header: bytes) -> str:
    """Commas, semicolons or tabs."""
    return max(",;\t", key=header.decode("utf-8", "replace").count)


def date_forms(path: Path) -> tuple[str, ...]:
    """How dates are written in a file, beside ISO 8601.

    Raises:
        StreamError: Which number is the day is not clear.
    """
    first = second = 0
    text = b""
    for _, block in LineFile(path).blocks(0):
        found = _SLASHED.findall(block)
        if not found:
            break
        text = text or b"/".join(found[0])
        first, second = (
            max(before, *(int(one[place]) for one in found)) for place, before in enumerate((first, second))
        )
        if max(first, second) > 12:
            order = "%m/%d" if first <= 12 else "%d/%m"
            return (*DATES, *(f"{order}/%Y{clock}" for clock in (" %H:%M:%S", " %H:%M", "")))
    if text:
        raise StreamError(
            f"{path.name} has dates such as {text.decode()}/…, whose day and month may be confused: write 2026-12-31"
        )
    return DATES


def table_of(block: bytes, delimiter: str, dates: tuple[str, ...] = DATES) -> Any:
    """Text with a line of names as an Arrow table: numbers, dates and texts as they look."""
    csv = import_extra("pyarrow.csv", "table", "A CSV table")
    rows = [line.split(delimiter) for line in block[: 2**16].decode("utf-8", "replace").splitlines()[1:]]
    cells = [cell.strip('"') for row in rows for cell in row]
    comma = delimiter != "," and any(map(_FRACTION.fullmatch, cells))
    return csv.read_csv(
        io.BytesIO(block),
        read_options=csv.ReadOptions(use_threads=False, block_size=max(len(block) + 1, 2**16)),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            decimal_point="," if comma else ".",
            timestamp_parsers=[csv.ISO8601, *dates],
            strings_can_be_null=True,
        ),
    )


def named_columns(path: Path, options: SourceOptions, dates: tuple[str, ...]) -> SourceOptions | None:
    """Options in which the columns of a long table are named, as far as they are clear; None for a wide table."""
    if options.modes is not None and options.value is not None:
        return options
    lines = LineFile(path)
    header = lines.first_line()
    if not header.strip():
        return options
    check_number_of_columns(header.count(delimiter_of(header).encode()) + 1, path.name)
    rows = lines.sample(len(header))
    if not rows.strip():
        raise StreamError(f"{path.name} has no rows below its line of column names: give at least one time")
    _check_names(header, path.name)
    frame, _ = _numeric(table_of(header + rows, delimiter_of(header), dates).to_pandas(date_as_object=False))
    _check_zones(frame, path.name)
    names = columns_found(frame, options, path.name)
    return None if names is None else replace(options, time=names[0], modes=names[1], value=names[2])


def open_wide_csv(path: Path, options: SourceOptions, dates: tuple[str, ...]) -> Source:
    """The whole of it, which is as large in memory as its slices are."""
    if options.follow is not None:
        raise StreamError(f"{path.name} is a wide table, which cannot be followed: leave follow out, or write it long")
    if options.duplicates is not None:
        raise StreamError(f"duplicates is for long tables, and {path.name} is a wide one: leave it out, or use late")
    content = b"".join(_blocks(path))
    lines = LineFile(path)
    header = lines.first_line()
    with_text = table_of(content, delimiter_of(header), dates)
    frame, bad = _numeric(with_text.to_pandas(date_as_object=False))
    count = sum(number for number, _, _ in bad.values())
    column, (_, line, first) = next(iter(bad.items()), ("", (0, 0, "")))
    what = f"{first!r} in column {column!r} of row {line}, which is no number"
    if count and options.on_bad != "skip":
        raise StreamError(
            f"{path.name} has {what}: mend it, leave the cell empty where nothing was observed, or take such cells for "
            "empty with --on-bad skip (on_bad='skip')"
        )
    _check_zones(frame, path.name)
    source = open_frame(frame, options, path.name)
    source.format = "csv"
    if count:
        source.notices.append(left_out("cell", count, path.name, what))
    if source.time_zone is not None:
        source.time_zone = offset_in(lines) or "UTC"
    return source


def offset_in(lines: LineFile) -> str | None:
    """The difference to UTC that the time in the first row is written with."""
    header = lines.first_line()
    row = lines.sample(len(header)).split(b"\n", 1)[0]
    for cell in row.decode("utf-8", "replace").split(delimiter_of(header)):
        found = _OFFSET.search(cell.strip('"')) if ":" in cell else None
        if found is not None:
            return f"UTC{found[1]}:{found[2]}"
    return None


def _check_names(header: bytes, title: str) -> None:
    """Refuse values where names should be: the first row would be lost."""
    cells = [cell.strip().strip('"') for cell in header.decode("utf-8", "replace").split(delimiter_of(header))]
    if all(_VALUE.fullmatch(cell) or cell.isdecimal() for cell in cells) and any(map(_VALUE.fullmatch, cells)):
        raise StreamError(f"{title} must begin with a line of column names, got values, {cells[0]!r} first: add one")


def _check_zones(frame: Any, title: str) -> None:
    """Refuse times of which some have a zone."""
    for name in [name for name, kind in frame.dtypes.items() if kind.kind not in "biufM"]:
        texts = frame[name].dropna() if list(frame.columns).count(name) == 1 else ()
        found = [(text, _ISO.fullmatch(text)) for text in texts if isinstance(text, str)]
        zoned, naive = (
            [text for text, match in found if match and bool(match["zone"]) is has] for has in (True, False)
        )
        if zoned and naive:
            raise StreamError(
                f"{title} has times with a zone, such as {zoned[0]}, and without, such as {naive[0]}: give all of them "
                "a zone, or none"
            )


def _blocks(path: Path) -> Iterator[bytes]:
    size = 0
    for _, block in LineFile(path).blocks(0):
        size += len(block)
        if size > MAX_LOADED_BYTES:
            raise StreamError(
                f"{path.name} is a wide table of more than {MAX_LOADED_BYTES} bytes: write it as Zarr or NetCDF"
            )
        yield block


def _numeric(frame: Any) -> tuple[Any, dict[str, tuple[int, int, str]]]:
    """Columns of which most cells are numbers as numbers; by column how many others, the row of the first, and it."""
    pandas = import_extra("pandas", "pandas", "A wide table")
    bad = {}
    for name in [name for name, kind in frame.dtypes.items() if kind.kind not in "biufM"]:
        if list(frame.columns).count(name) > 1:
            continue  # refused later on
        texts = frame[name].dropna()
        numbers = pandas.to_numeric(
            texts.str.replace(",", ".") if texts.str.fullmatch(_FRACTION).any() else texts, "coerce"
        )
        wrong = numbers.isna()
        if len(texts) and 2 * wrong.sum() < len(texts):
            if wrong.any():
                bad[str(name)] = (int(wrong.sum()), int(texts.index[wrong][0]) + 1, str(texts[wrong].iloc[0]))
            frame = frame.assign(**{str(name): numbers.reindex(frame.index)})
    return frame, bad
