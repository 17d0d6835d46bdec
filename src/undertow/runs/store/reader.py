"""A store as its readers see it: the labelled arrays, the settings, the alerts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.errors import StoreError, reason
from undertow.runs.store.alerts import read_alerts
from undertow.runs.store.growth import chunk_names
from undertow.runs.store.incidents import read_incidents
from undertow.runs.store.layout import PREDICTOR, SLICE_VARIABLES, WEIGHTS

_BLOCK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class StoredRun:
    """What `undertow run` wrote, opened for reading; arrays are read when they are used.

    Attributes:
        folder: the store.
        dataset: the same as an `xarray.Dataset`.
    """

    folder: Path
    dataset: Any

    @property
    def time_name(self) -> str:
        """Of the dimension along which the store grew."""
        return str(self.dataset["rank"].dims[0])

    @property
    def length(self) -> int:
        """Number of slices."""
        return int(self.dataset.sizes[self.time_name])

    @property
    def kept(self) -> tuple[str, ...]:
        """The arrays that were kept of every slice."""
        return tuple(name for name in SLICE_VARIABLES if name in self.dataset.data_vars)

    @property
    def mean_name(self) -> str | None:
        """The array that says what every entry should be: "mean", in stores of earlier versions "low_rank"."""
        return next((name for name in ("mean", "low_rank") if name in self.kept), None)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Names of the predictors whose weights were kept; none unless the model was a tracker."""
        return tuple(map(str, self.dataset[PREDICTOR].values)) if WEIGHTS in self.dataset.data_vars else ()

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
        return self.per_slice(self.time_name)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Of the model, with what depends on the stream."""
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

    def per_slice(self, name: str) -> np.ndarray[Any, Any]:
        """One value per slice, such as ``fit_error``; (T,)."""
        return self.loaded(self.dataset[name])

    def loaded(self, variable: Any) -> np.ndarray[Any, Any]:
        """The values of an `xarray.DataArray` of this store.

        Raises:
            StoreError: they are damaged.
        """
        try:
            return np.asarray(variable.values)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise _damaged(self.folder, f"{variable.name} cannot be read: {reason(error)}") from error

    def slice(self, name: str, index: int) -> np.ndarray[Any, Any]:
        """One array of one slice."""
        return self.loaded(self.dataset[name].isel({self.time_name: index})).astype(np.float64)

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[int, dict[str, np.ndarray[Any, Any]]]]:
        """Index of the first slice and the arrays of as many slices as fit into little memory, until the end."""
        entries = max(1, math.prod(self.shape)) * max(1, len(names))
        length = max(1, min(1024, _BLOCK_BYTES // (8 * entries)))
        for start in range(0, self.length, length):
            part = self.dataset[list(names)].isel({self.time_name: slice(start, start + length)})
            yield start, {name: self.loaded(part[name]) for name in names}

    def alerts(self) -> Iterator[dict[str, Any]]:
        """All alerts in the order of the stream, as rows with the names of the columns; none if none were kept."""
        attributes = self.dataset.attrs
        return read_alerts(attributes.get("alerts", "none"), self.folder, safe="spreadsheet_safe" in attributes)

    def incidents(self) -> list[dict[str, Any]]:
        """All incidents as they are now, oldest first, in the form of `undertow.Incident.to_json`."""
        return read_incidents(self.folder) if "false_alarms" in self.dataset.attrs else []


def open_store(path: Path, *, filled: bool = False) -> StoredRun:
    """Open what `undertow run` wrote.

    Args:
        path: the folder.
        filled: whether it must hold at least one slice.

    Raises:
        StoreError: this is not possible; one sentence says why.
    """
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
        raise _damaged(path, reason(error)) from error
    if not {"rank", "noise_std", "status"} <= found:
        raise StoreError(f"{path} is a Zarr group, but none that undertow run wrote")
    for name in dataset.variables:
        if missing := missing_chunk(path / str(name), dataset[name], dataset.attrs):
            raise _damaged(path, f"{name}/{missing} is missing")  # zarr would fill its place without a word
    run = StoredRun(path, dataset)
    if filled and not run.length:
        raise StoreError(
            f"{path} holds no slices yet: wait for its first checkpoint, or continue with undertow run --resume"
        )
    return run


def missing_chunk(folder: Path, variable: Any, attributes: Mapping[str, Any]) -> str | None:
    """The first chunk of an array that is not there, by its name; None if all are.

    Args:
        folder: Of the array.
        variable: The array.
        attributes: Of the store.
    """
    chunks = variable.encoding.get("chunks")
    if not chunks or not variable.size:
        return None
    there = set(os.listdir(folder)) if folder.is_dir() else set()
    return next((name for _, name in chunk_names(variable.shape, chunks, attributes) if name not in there), None)


def _damaged(folder: Path, why: str) -> StoreError:
    return StoreError(f"{folder} is damaged ({why}): restore it from a copy, or run again with --overwrite")


def is_store(path: Path) -> bool:
    """Whether a folder looks like a store that `undertow run` wrote, without opening it."""
    return (path / "zarr.json").is_file() and (path / "noise_std" / "zarr.json").is_file()


def _parsed(text: Any) -> dict[str, Any]:
    try:
        content = json.loads(text) if text else {}
    except (TypeError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
