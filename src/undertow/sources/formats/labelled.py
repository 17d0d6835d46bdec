"""HDF5, NetCDF and Zarr through xarray: names, labels and times come from the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import Label, StreamError
from undertow.sources.errors import check_real, check_slice_shape, closed_on_error, import_extra
from undertow.sources.formats.arrays import TIME_NAMES, ArraySource, choose
from undertow.sources.formats.base import CHUNK_BYTES, Indexed, block_length
from undertow.sources.formats.validation import check_zarr, hdf5_shapes
from undertow.sources.options import SourceOptions
from undertow.sources.times import plain_time

_MAX_COORDINATE = 2**27


class LabelledArray(Indexed):
    """One variable of a data set, read in blocks of the chunks it is stored in."""

    def __init__(
        self, reopen: Callable[[], Any], name: str, format: str, options: SourceOptions, folder: Path | None = None
    ) -> None:
        self.format, self._reopen, self._options, self._folder = format, reopen, options, folder
        self._dataset = reopen()
        with closed_on_error(self._dataset):
            self._describe(name, options)

    def _describe(self, name: str, options: SourceOptions) -> None:
        array, time = _chosen_array(self._dataset, name, options)
        check_real(name, array.dtype)
        shape = tuple(int(array.sizes[dim]) for dim in array.dims if dim != time)
        dims = tuple(str(dim) for dim in array.dims if dim != time)
        check_slice_shape(name, shape)  # before labels of that size are made
        labels = tuple(_labels(array, dim) for dim in array.dims if dim != time)
        stored = (array.encoding.get("preferred_chunks") or {}).get(time, 1)
        lazy = (getattr(array, "chunksizes", None) or {}).get(time, (1,))  # of dask
        block = block_length(shape, 8, max(int(stored), *map(int, lazy)), CHUNK_BYTES)
        super().__init__(name, shape, int(array.sizes[time]), dims, labels, block=block, follow=options.follow)
        self._array, self._time = array, time
        self.time_name = str(time) if not str(time).startswith("phony_dim") else "time"
        self.times = _times(array, time)

    @property
    def attributes(self) -> dict[str, str]:
        """The unit of the values, where it is named."""
        units = self._array.attrs.get("units")
        return {"units": units} if isinstance(units, str) and units else {}

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        part = self._array.isel({self._time: slice(start, stop)})
        values = np.asarray(part.transpose(self._time, ...).values)
        if self._folder is not None and not _is_zarr(self._folder / str(self._array.name)):
            # Chunks that are not there count as empty: a store that is gone would read as one without data.
            raise StreamError(f"{self.name} was removed while it was read: put it back to continue")
        return values

    def refresh(self) -> int:  # noqa: D102
        try:
            dataset = self._reopen()
            array, time = _chosen_array(dataset, self.name, self._options)
        except Exception:  # in the middle of being written: try again later
            return self.length
        length = int(array.sizes[time])
        if length > self.length:
            self._dataset.close()
            self._dataset, self._array, self._block = dataset, array, None
            self.times = _times(array, time)
        else:
            dataset.close()
        return length

    def close(self) -> None:  # noqa: D102
        super().close()
        self._dataset.close()


def open_labelled_file(path: Path, options: SourceOptions) -> LabelledArray:
    """An HDF5 or NetCDF file."""
    xarray = import_extra("xarray", "store", "An HDF5 or NetCDF file")
    group, _, variable = (options.variable or "").rpartition("/")
    with path.open("rb") as file:
        is_old = file.read(3) == b"CDF"
    if is_old:
        import_extra("scipy", "matlab", "A NetCDF 3 file")
        reopen = partial(xarray.open_dataset, path, engine="scipy", cache=False)
        return LabelledArray(reopen, path.name, "netcdf", options)
    held = hdf5_shapes(path)
    import_extra("h5netcdf", "store", "An HDF5 or NetCDF file")
    if options.variable is None and not any("/" not in key and len(shape) > 1 for key, shape in held.items()):
        large = {key: shape for key, shape in held.items() if len(shape) > 1}
        group, _, variable = choose(path.name, large, None, ", ".join(held)).rpartition("/")

    reopen = partial(xarray.open_dataset, path, engine="h5netcdf", group=group or None, phony_dims="sort", cache=False)
    options = replace(options, variable=variable or None)
    return LabelledArray(reopen, path.name, "netcdf" if path.suffix == ".nc" else "hdf5", options)


def open_zarr(path: Path, options: SourceOptions) -> Indexed:
    """A Zarr folder: a group with names and labels, or a plain array with time first."""
    xarray = import_extra("xarray", "store", "A Zarr folder")
    import_extra("zarr", "store", "A Zarr folder")
    from undertow.sources.formats.zarr_store import open_checked  # not before it is clear that zarr is there

    if _is_plain_array(path):
        import zarr

        array = zarr.open_array(open_checked(path, check_zarr(path)), mode="r")
        return ArraySource(cast(NDArray[Any], array), path.name, options)
    group, _, variable = (options.variable or "").rpartition("/")

    def reopen() -> Any:
        store = open_checked(path, check_zarr(path))
        return xarray.open_dataset(
            store, engine="zarr", chunks=None, cache=False, consolidated=False, group=group or None
        )

    return LabelledArray(reopen, path.name, "zarr", replace(options, variable=variable or None), path / group)


def _is_plain_array(path: Path) -> bool:
    """Whether the folder itself is an array, not a group of them."""
    if (path / ".zarray").is_file():
        return True
    try:
        metadata = json.loads((path / "zarr.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(metadata, dict) and metadata.get("node_type") == "array"


def _is_zarr(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("zarr.json", ".zarray"))


def open_labelled_array(array: Any, options: SourceOptions) -> LabelledArray:
    """An ``xarray.DataArray`` or one variable of a ``Dataset``, in memory or lazy."""
    if not hasattr(array, "name"):
        return LabelledArray(lambda: array, "dataset", "xarray", options)
    name = str(array.name) if array.name is not None else "array"
    return LabelledArray(lambda: array.to_dataset(name=name), name, "xarray", options)


def _chosen_array(dataset: Any, name: str, options: SourceOptions) -> tuple[Any, Any]:
    """The variable to read and the name of its time dimension."""
    arrays = {str(key): array for key, array in dataset.data_vars.items() if array.dtype.kind in "biuf"}
    time = _time_dimension(dataset, arrays, name, options)
    candidates = {
        key: tuple(array.sizes.values()) for key, array in arrays.items() if time in array.dims and array.ndim > 1
    }
    return arrays[choose(name, candidates, options.variable, ", ".join(map(str, dataset.variables)))], time


def _time_dimension(dataset: Any, arrays: dict[str, Any], name: str, options: SourceOptions) -> Any:
    """Named, or with dates along it, or with the name of a time, or unlimited, or the first where none has a name."""
    wanted = options.time if isinstance(options.time, str) else options.time_axis
    variable = options.variable if options.variable in arrays else None
    described = arrays[variable] if variable else max(arrays.values(), key=lambda array: array.ndim, default=None)
    if described is None:
        raise StreamError(
            f"{name} holds no array of numbers: it holds {', '.join(map(str, dataset.variables)) or 'nothing'}"
        )
    dims = list(described.dims)
    if isinstance(wanted, str) and wanted.lstrip("-").isdigit():
        wanted = int(wanted)
    if isinstance(wanted, int):
        if not -len(dims) <= wanted < len(dims):
            raise StreamError(f"time_axis must be from 0 to {len(dims) - 1} for {name}, got {wanted}")
        return dims[wanted]
    if wanted is not None:
        if wanted not in dataset.sizes:
            raise StreamError(
                f"{name} has no dimension {wanted!r}: its dimensions are {', '.join(map(str, dataset.sizes))}"
            )
        return wanted
    dated = [dim for dim in dims if dim in dataset.coords and _is_dated(dataset.coords[dim])]
    named = [dim for dim in dims if str(dim).lower() in TIME_NAMES]
    unlimited = [dim for dim in dims if dim in (dataset.encoding.get("unlimited_dims") or ())]
    for guesses in (dated, named, unlimited):
        if len(guesses) == 1:
            return guesses[0]
    if all(str(dim).startswith(("phony_dim", "dim_")) for dim in dims):
        return dims[0]
    raise StreamError(
        f"{name} has the dimensions {', '.join(map(str, dims))}, none of them clearly time: name it with time_axis=…"
    )


def _is_dated(coordinate: Any) -> bool:
    return coordinate.dtype.kind == "M" or (coordinate.dtype.kind == "O" and "calendar" in coordinate.encoding)


def _times(array: Any, time: Any) -> NDArray[Any] | None:
    if time not in array.coords or array.sizes[time] > _MAX_COORDINATE:
        return None
    values = np.asarray(array.coords[time].values)
    if values.dtype.kind in "iufM":
        return values
    return np.array([str(plain_time(value)) for value in values.tolist()])


def _labels(array: Any, dim: Any) -> tuple[Label, ...] | None:
    if dim not in array.coords or array.coords[dim].ndim != 1:
        return None
    values = np.asarray(array.coords[dim].values)
    if values.dtype.kind == "M":
        return tuple(str(value) for value in values)
    return tuple(value if isinstance(value, (int, float, str)) else str(plain_time(value)) for value in values.tolist())
