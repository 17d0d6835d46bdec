"""NetCDF 4, appended block by block, with the dimensions, labels and times of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.errors import StoreError
from undertow.runs.store.layout import EVENTS, PREDICTOR, STEP_VARIABLES, WEIGHTS
from undertow.runs.store.reader import StoredRun
from undertow.runs.store.times import Times


def write_netcdf(run: StoredRun, path: Path, names: list[str], tick: Callable[[int], None]) -> None:
    """The chosen arrays and all values per slice; time is the unlimited dimension."""
    try:
        import h5netcdf
        import h5py
    except ModuleNotFoundError as error:
        raise StoreError(f"NetCDF needs {error.name}: pip install 'undertow[store]'") from None
    dataset, time = run.dataset, run.time_name
    dims = (*run.dims, PREDICTOR) if run.predictors else run.dims

    def define(file: Any, name: str, chunk: int) -> Any:
        variable = dataset[name]
        text, dates = variable.dtype.kind not in "biufM", variable.dtype.kind == "M"
        options: dict[str, Any] = {}
        if variable.dims[:1] == (time,):
            options["chunks"] = (min(chunk, run.length), *variable.shape[1:])
            if not text:
                options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        kind = h5py.string_dtype() if text else "<i8" if dates else variable.dtype
        made = file.create_variable(name, variable.dims, kind, **options)
        made.attrs.update({**variable.attrs, **(Times("datetime").attributes if dates else {})})
        return made

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {time: None, **{name: int(dataset.sizes[name]) for name in dims}}
        file.resize_dimension(time, run.length)
        file.attrs.update(dataset.attrs)
        for name in dims:
            if name in dataset.coords:
                define(file, name, 1)[...] = _plain(run.loaded(dataset[name]))
        of_tracker = (WEIGHTS, EVENTS) if run.predictors else ()
        for name in (time, *STEP_VARIABLES, *of_tracker):
            define(file, name, 4096)[...] = _plain(run.loaded(dataset[name]))
        variables = {name: define(file, name, 16) for name in names}
        for start, arrays in run.blocks(names):
            stop = start + len(arrays[names[0]])
            for name, variable in variables.items():
                variable[start:stop] = arrays[name]
            tick(stop)


def _plain(values: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return array.astype("datetime64[ns]").astype(np.int64)
    return array if array.dtype.kind in "biuf" else array.astype(object)
