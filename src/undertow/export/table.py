"""CSV, one row per entry and slice: time, labels, and a column for every array."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.store.cells import spreadsheet_safe
from undertow.runs.store.reader import StoredRun


def write_csv(run: StoredRun, path: Path, names: list[str], tick: Callable[[int], None], *, safe: bool = False) -> None:
    """Entries that were not observed are empty in the column of the data; ``safe``: no cell is a formula."""
    cell: Callable[[Any], Any] = spreadsheet_safe if safe else (lambda value: value)
    times = (run.times.astype(str) if run.times.dtype.kind == "M" else run.times).tolist()
    grid = np.indices(run.shape).reshape(len(run.shape), -1)
    labels = [
        run.loaded(run.dataset[name])[where].tolist() if name in run.dataset.coords else where.tolist()
        for name, where in zip(run.dims, grid, strict=True)
    ]
    labels = [[cell(label) for label in column] for column in labels]
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(map(cell, [run.time_name, *run.dims, *names]))
        for start, arrays in run.blocks(names):
            for offset in range(len(arrays[names[0]])):
                time = cell(times[start + offset])
                columns = [_cells(arrays[name][offset].reshape(-1)) for name in names]
                rows.writerows((time, *entry) for entry in zip(*labels, *columns, strict=True))
            tick(start + len(arrays[names[0]]))


def _cells(values: np.ndarray[Any, Any]) -> list[str]:
    """The shortest text that reads back as the same number; nothing for NaN."""
    return ["" if value != value else str(value) for value in values]
