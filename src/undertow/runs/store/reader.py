"""A store as its readers see it: the labelled arrays, the settings, the alerts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.errors import StoreError
from undertow.runs.store.alerts import NUMBERS, path_of
from undertow.runs.store.layout import SLICE_VARIABLES


@dataclass(frozen=True)
class StoredRun:
    """What `undertow run` wrote, opened for reading; arrays are read when they are looked at."""

    folder: Path
    dataset: Any
    """`xarray.Dataset`."""

    @property
    def time_name(self) -> str:
        """Of the dimension along which the store grew."""
        return str(self.dataset["rank"].dims[0])

    @property
    def length(self) -> int:
        """Slices."""
        return int(self.dataset.sizes[self.time_name])

    @property
    def kept(self) -> tuple[str, ...]:
        """The arrays that were kept of every slice."""
        return tuple(name for name in SLICE_VARIABLES if name in self.dataset)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the modes; empty if no array was kept."""
        return tuple(map(str, self.dataset[self.kept[0]].dims[1:])) if self.kept else ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the modes."""
        return tuple(int(self.dataset.sizes[name]) for name in self.dims)

    @property
    def times(self) -> np.ndarray[Any, Any]:
        """Of all slices."""
        return np.asarray(self.dataset[self.time_name].values)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Of the model: as configured, or as it settled on them by itself."""
        attributes = self.dataset.attrs
        return {**_parsed(attributes.get("settings")), **_parsed(attributes.get("settings_in_force"))}

    @property
    def threshold(self) -> float:
        """Of the outlier probability."""
        return float(self.dataset.attrs.get("threshold", 0.5))

    @property
    def source(self) -> str:
        """Name of the stream."""
        return str(self.dataset.attrs.get("source", self.folder.name))

    def slice(self, name: str, index: int) -> np.ndarray[Any, Any]:
        """One array of one slice."""
        return np.asarray(self.dataset[name].isel({self.time_name: index}).values, np.float64)

    def alerts(self) -> Iterator[dict[str, Any]]:
        """All alerts in the order of the stream, as rows with the names of the columns; none if none were kept."""
        format = self.dataset.attrs.get("alerts", "none")
        if format == "none":
            return
        path = path_of(format, self.folder)
        if not path.exists():
            return
        if format == "parquet":
            yield from _parquet_rows(path)
            return
        with open(path, encoding="utf-8", newline="") as file:
            if format == "jsonl":
                yield from (json.loads(line) for line in file if line.endswith("\n"))
                return
            for row in csv.DictReader(file):
                yield {name: float(value) if name in NUMBERS else value for name, value in row.items()}


def open_filled(path: Path) -> StoredRun:
    """Open a store that has at least one slice to show."""
    run = open_store(path)
    if not run.length:
        raise StoreError(
            f"{path} holds no slices yet: wait for its first checkpoint, or continue with undertow run --resume"
        )
    return run


def open_store(path: Path) -> StoredRun:
    """Open what `undertow run` wrote, or say in one sentence why that is not possible."""
    try:
        import xarray
        import zarr  # noqa: F401 (xarray would complain at length)
    except ModuleNotFoundError as error:
        raise StoreError(f"reading a store needs {error.name}: pip install 'undertow[store]'") from None
    if not path.is_dir():
        raise StoreError(f"{path} is not a folder: name a store that undertow run wrote")
    if not is_store(path):
        raise StoreError(f"{path} is no store that undertow run wrote, or its first checkpoint was never reached")
    try:
        dataset = xarray.open_zarr(path, consolidated=True, chunks=None)
        found = {str(name) for name in dataset.variables}
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise StoreError(
            f"{path} cannot be read ({' '.join(str(error).split())}): check that it is complete"
        ) from error
    if not {"rank", "noise_std", "status"} <= found:
        raise StoreError(f"{path} is a Zarr group, but none that undertow run wrote")
    return StoredRun(path, dataset)


def is_store(path: Path) -> bool:
    """Whether a folder looks like a store of ours, without opening it."""
    return (path / "zarr.json").is_file() and (path / "noise_std" / "zarr.json").is_file()


def _parquet_rows(folder: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise StoreError("alerts in Parquet need pyarrow: pip install 'undertow[table]'") from None
    for part in sorted(folder.glob("part-*.parquet")):
        for row in pq.read_table(part, partitioning=None).to_pylist():
            yield {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def _parsed(text: Any) -> dict[str, Any]:
    try:
        content = json.loads(text) if text else {}
    except (TypeError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
