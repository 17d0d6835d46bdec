"""`undertow.clean`: a whole array or table in one call, and everything about it as one `xarray.Dataset`."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import FalseAlarms, Incident, Incidents
from undertow.incidents.growing import grown
from undertow.incidents.rate import DEFAULT
from undertow.runs.bar import Tick, ticker
from undertow.runs.default_model import default_model, update
from undertow.runs.entry import run
from undertow.runs.errors import RunError
from undertow.runs.on_disk import OnDisk
from undertow.runs.options import pictures
from undertow.runs.places import Places
from undertow.runs.smoothing import Correlation, combined
from undertow.runs.store.incidents import read_incidents
from undertow.runs.store.layout import (
    EVENTS,
    FLAGS,
    INCIDENT,
    INCIDENTS,
    NOTICED,
    PREDICTOR,
    SLICE_VARIABLES,
    WEIGHTS,
    distinct,
)
from undertow.sources.base import Item, Stream
from undertow.sources.capacity import any_slots
from undertow.sources.opening import open_stream
from undertow.view.names import Names, in_words
from undertow.view.series import DETAILS

MOST_BYTES = 4 * 2**30
"""Of results that are held in memory; more goes to a folder."""
KEPT = ("mean", "std", "outlier_probability")
DATA = "data"
STATUS = "status"
_TAKEN = {DATA, *KEPT, FLAGS, STATUS, WEIGHTS, EVENTS, PREDICTOR, INCIDENTS, INCIDENT, DETAILS}


def clean(
    X: Any,
    *,
    time: str | None = None,
    smooth: bool = False,
    model: Any = None,
    threshold: float = 0.5,
    false_alarms: str | float | None = None,
    believed_after: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int, int | None], None] | None = None,
    **reading: Any,
) -> Any:
    """Complete a whole recording, with error bars, and say what in it is wrong.

    Args:
        X: (T, …) array (NumPy, dask, zarr, JAX, torch); `xarray.DataArray` or `Dataset`; frame of pandas or polars,
            wide (a row per time, a column per entry) or long (columns time, labels, value); or a path.
        time: Dimension or column of the times; found where that is clear.
        smooth: Whether slices that came later count too: a second pass backwards, combined with the first. It takes
            twice the time.
        model: A new model; `undertow.Tracker()` if left out. It goes on from there afterwards (not with `smooth`).
        threshold: An entry is flagged if its outlier probability is at least this.
        false_alarms: False incidents that are accepted, such as "1/day", "1/1000" slices or "fdr 10%"; with it the
            results have `incidents`: what is flagged, grouped over time, rows and slices.
        believed_after: Slices in a row after which a lasting change is believed, as `undertow.Tracker` has it.
        out: Folder to write the results to (as `undertow.run` does; with `smooth` a plain Zarr group, and beside it
            eight times the recording for a while), for recordings whose results do not fit into memory; they are then
            read when they are used, by dask.
        progress: Whether to show how far it is: True, False, or a function of slices done and slices in all. By default
            in terminals and notebooks.
        **reading: More options of `undertow.open_stream`: `modes`, `value`, `variable`, `select`, `gaps`, …

    Returns:
        `xarray.Dataset` with `data` as it came, and `mean`, `std`, `outlier_probability` and `flags` of every entry,
        missing ones included; `status` of every slice, and the `weights` of a tracker's predictors. What was asked for,
        and what was irregular about the source (`notices`), is in its attributes.

    Raises:
        StreamError: `X` cannot be read; one sentence says why.
        RunError: Results are too large for memory, or options exclude each other.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> X = np.outer(np.arange(1.0, 9.0), np.ones(30)).reshape(8, 6, 5)
        >>> X[3, 1, 1] = np.nan
        >>> cleaned = ut.clean(X, model=ut.RobustCP(max_rank=3, window=4))
        >>> dict(cleaned["mean"].sizes)
        {'time': 8, 'mode_1': 6, 'mode_2': 5}
    """
    xarray = _xarray()
    if not 0 < threshold <= 1:
        raise RunError(f"threshold must be a probability above 0 and at most 1, got {threshold!r}")
    if smooth and model is not None:
        raise RunError("smooth begins twice with a new tracker, got a model too: leave it out")
    if believed_after is not None and model is not None:
        raise RunError("believed_after is for new trackers, got a model too: give it to the model, or leave model out")
    asked = None if false_alarms is None else _rate(false_alarms)
    if out is not None:
        _check_folder(Path(out))
    _check_options(reading)
    if time is not None:
        reading["time"] = time
    stream = open_stream(X, **_without_names(X, reading))
    try:
        new = partial(default_model, pictures(stream) > 0, believed_after)
        tuned = {"false_alarms": asked, "believed_after": believed_after}
        tuned = {name: value for name, value in tuned.items() if value is not None}
        if out is not None and not smooth:
            return _stored(xarray, X, stream, model or new(), threshold, out, progress, tuned)
        if smooth and any_slots(stream):
            raise RunError("smooth needs all labels before the first slice: leave capacity out, or smooth")
        tick, tuned = ticker(progress, "cleaning"), {"smooth": int(smooth), **tuned}
        watch = None if asked is None else Incidents(stream.shape, stream.labels, asked, dims=stream.dims)
        if out is not None:
            with TemporaryDirectory(prefix=".undertow-", dir=Path(out).parent) as work:
                both = _smoothed(stream, new, tick, watch, Path(work))
                made = _dataset(xarray, X, stream, both, threshold, tuned)
                _portable(made).to_zarr(Path(work) / "made", zarr_format=3, consolidated=False)
                os.replace(Path(work) / "made", out)
            return xarray.open_zarr(out, consolidated=False)
        _check_size(stream)
        found = _smoothed(stream, new, tick, watch) if smooth else _passed(stream, model or new(), tick, watch)
        return _dataset(xarray, X, stream, found, threshold, tuned)
    finally:
        stream.close()


Slices = list[NDArray[Any]] | OnDisk


@dataclass(eq=False)
class Pass:
    """What one pass over a stream gave, slice by slice."""

    arrays: dict[str, Slices] = field(default_factory=lambda: {name: [] for name in KEPT})
    innovations: Slices = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    values: Slices = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    weights: list[dict[str, float]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    watch: Incidents | None = None
    incidents: dict[int, Incident] = field(default_factory=dict)

    def widen(self) -> None:
        """Let all slices have the rows of the last, where labels came meanwhile: nothing was known of them before."""
        shape = self.values[-1].shape
        for several in (self.values, *self.arrays.values()):
            for number, one in enumerate(several):
                if one.shape != shape:
                    wider = np.full(shape, np.nan, one.dtype)
                    wider[tuple(map(slice, one.shape))] = one
                    several[number] = wider

    @classmethod
    def on_disk(cls, folder: Path, name: str, watch: Incidents | None = None) -> Pass:
        """With all that is large in files of a folder."""
        arrays: dict[str, Slices] = {kept: OnDisk(folder / f"{name}-{kept}") for kept in KEPT}
        others = (OnDisk(folder / f"{name}-{kept}") for kept in ("innovations", DATA))
        return cls(arrays, next(others), values=next(others), watch=watch)

    def watched(self, result: Any, item: Item) -> None:
        """The newest slice as those see it who look for incidents."""
        changes = () if self.watch is None else self.watch.update(result, item.time, item.values)
        self.incidents |= {change.incident.id: change.incident for change in changes}

    def add(self, result: Any, stream: Stream) -> None:
        """One more slice of a stream."""
        for name, kept in self.arrays.items():
            kept.append(np.asarray(getattr(result, name)))
        self.status.append(" ".join(result.status.codes) or "ok")
        self.weights.append(dict(result.weights))
        events = getattr(result, "events", None)
        names = None if events is None else Names.of(stream.shape, dims=stream.dims, coords=stream.labels)
        self.events.append("" if names is None else in_words(events, names))


def _passed(stream: Stream, model: Any, tick: Tick, watch: Incidents | None) -> Pass:
    found, places = Pass(watch=watch), None
    for index, item in enumerate(stream.slices()):
        places = places or Places(item.values.shape, stream.labels)
        for mode, slots in places.retire(model, index):
            if found.watch is not None:
                found.watch.forget(mode, slots)
        if found.watch is not None and item.values.shape != found.watch.shape:
            found.watch = grown(found.watch, item.values.shape)
        result = places.learn(model, item.values, item.time, index)
        found.add(result, stream)
        found.watched(result, item)
        found.values.append(item.values)
        found.times.append(item.time)
        tick(len(found.times), stream.length)
    if places is None:
        raise RunError(f"{stream.name} has no slices: give at least one time")
    found.widen()
    if hasattr(model, "labels") and model.labels is None and any(labels is not None for labels in stream.labels):
        model.labels = dict(zip(stream.dims, places.labels(stream.labels), strict=True))
    return found


def _smoothed(
    stream: Stream, new: Callable[[], Any], tick: Tick, watch: Incidents | None, folder: Path | None = None
) -> Pass:
    """Both passes combined; status, weights and incidents are those of the pass forwards."""
    forwards, backwards = Pass(watch=watch), Pass()
    if folder is not None:
        forwards, backwards = Pass.on_disk(folder, "forwards", watch), Pass.on_disk(folder, "backwards")
    model = new()
    twice = None if stream.length is None else 2 * stream.length
    for item in stream.slices():
        result = update(model, item.values, item.time)
        forwards.add(result, stream)
        forwards.watched(result, item)
        forwards.innovations.append(np.asarray(result.plain("innovations")))
        forwards.values.append(item.values)
        forwards.times.append(item.time)
        tick(len(forwards.times), twice)
    if not forwards.times:
        raise RunError(f"{stream.name} has no slices: give at least one time")
    model, correlation = new(), Correlation()
    count = len(forwards.times)
    for number, index in enumerate(reversed(range(count))):
        result = update(model, forwards.values[index], _mirrored(forwards.times[index], forwards.times[-1]))
        backwards.add(result, stream)
        correlation.add(forwards.innovations[index], result.plain("innovations"))
        tick(count + number + 1, 2 * count)
    rho = correlation.value()
    for index in range(count):
        back = count - 1 - index
        means, stds, probabilities = (
            (forwards.arrays[name][index], backwards.arrays[name][back])
            for name in ("mean", "std", "outlier_probability")
        )
        forwards.arrays["mean"][index], forwards.arrays["std"][index] = combined(means, stds, rho)
        forwards.arrays["outlier_probability"][index] = np.minimum(*probabilities)
    return forwards


def _mirrored(time: Any, last: Any) -> Any:
    """As much after the last time as it is before it; None where times are no dates or numbers."""
    return last + (last - time) if isinstance(time, np.datetime64 | np.number | int | float) else None


def _dataset(xarray: Any, X: Any, stream: Any, found: Pass, threshold: float, tuned: dict[str, Any]) -> Any:
    """The results with the names and labels of what was given."""
    time = distinct([stream.time_name])[0]
    dims = (time, *distinct(stream.dims, time))
    arrays = {DATA: _together(found.values), **{name: _together(kept) for name, kept in found.arrays.items()}}
    arrays[FLAGS] = arrays["outlier_probability"] >= threshold
    attributes = {**SLICE_VARIABLES, FLAGS: f"outlier probability at least {threshold}"}
    variables = {
        name: (dims, array, {"long_name": attributes[name], **_units(stream, name)}) for name, array in arrays.items()
    }
    coords: dict[Any, Any] = {dim: list(labels) for dim, labels in zip(dims[1:], stream.labels, strict=True) if labels}
    if found.times[0] is not None:
        coords[time] = _column(found.times)
    coords |= _own_coordinates(X, dims, arrays["mean"].shape)
    if any(found.weights):
        names = list(found.weights[-1])
        weights = np.array([[slice_weights.get(name, np.nan) for name in names] for slice_weights in found.weights])
        variables[WEIGHTS] = ((time, PREDICTOR), weights, {"long_name": "weight of every predictor"})
        coords[PREDICTOR] = names
        variables[EVENTS] = ((time,), np.array(found.events, object), {"long_name": NOTICED})
    variables[STATUS] = ((time,), np.array(found.status, object), {"long_name": "ok, or status codes"})
    if found.watch is not None:
        variables |= _incidents(list(found.incidents.values()), stream.time_zone is not None)
    made = xarray.Dataset(variables, coords, {"threshold": threshold, **tuned, "source": stream.name})
    return _with_source(made, stream, time)


def _together(slices: Slices) -> Any:
    """As one array (T, …); it is read when it is used where the slices are in a file."""
    return slices.lazy() if isinstance(slices, OnDisk) else np.stack(slices)


def _portable(made: Any) -> Any:
    """With labels as Zarr has texts in its specification."""
    return made.assign_coords({name: one.astype(object) for name, one in made.coords.items() if one.dtype.kind == "U"})


def _with_source(made: Any, stream: Any, time: str) -> Any:
    """With what was irregular about the source, and the zone of its times."""
    if stream.notices:
        made.attrs["notices"] = list(stream.notices)
    if stream.time_zone is not None and time in made.coords:
        made[time].attrs |= {"time_zone": "UTC", "time_zone_of_source": stream.time_zone}
    return made


def _rate(given: str | float) -> str:
    try:
        return FalseAlarms.parse(given).text
    except ValueError as error:
        raise RunError(f"{error}, or None") from None


def _incidents(found: list[Incident], in_utc: bool) -> dict[str, tuple[tuple[str], NDArray[Any], dict[str, str]]]:
    """One sentence each, in the order in which they began, and all that is known of them."""
    ordered = sorted(found, key=lambda one: one.id)
    sentences = np.array([one.said(in_utc) for one in ordered], object)
    details = np.array([json.dumps(one.to_json()) for one in ordered], object)
    return {
        INCIDENTS: (
            (INCIDENT,),
            sentences,
            {"long_name": "what is wrong, at the rate of false alarms that was accepted"},
        ),
        DETAILS: ((INCIDENT,), details, {"long_name": "the same as JSON, with positions of entries and rows"}),
    }


def _stored(
    xarray: Any,
    X: Any,
    stream: Any,
    model: Any,
    threshold: float,
    out: Any,
    progress: bool | Tick | None,
    tuned: dict[str, Any],
) -> Any:
    """Block by block to a folder, opened lazily."""
    tick = ticker(progress, "cleaning")
    run(
        stream,
        model,
        store=out,
        keep=(DATA, *KEPT),
        alerts=None,
        threshold=threshold,
        false_alarms=tuned.get("false_alarms", DEFAULT),
        progress=lambda now: tick(now.slices, now.length),
    )
    found = xarray.open_zarr(out)
    flags = (found["outlier_probability"] >= threshold).assign_attrs(
        long_name=f"outlier probability at least {threshold}"
    )
    kept = [DATA, *KEPT, STATUS, *(name for name in (WEIGHTS, EVENTS) if name in found)]
    made = found[kept].assign({FLAGS: flags}).assign_attrs(tuned)
    dims = tuple(map(str, found["mean"].dims))
    made = _with_source(made.assign_coords(_own_coordinates(X, dims, found["mean"].shape)), stream, dims[0])
    if "false_alarms" not in tuned:
        return made
    read = [Incident.from_json(one) for one in read_incidents(Path(out))]
    return made.assign(_incidents(read, stream.time_zone is not None))


def _own_coordinates(X: Any, dims: tuple[str, ...], shape: tuple[int, ...]) -> dict[Any, Any]:
    """All coordinates of a labelled array, those that are no labels included, if the results have its dimensions.

    One that is called as a result is, `mean`, gets another name, `mean_`.
    """
    if not hasattr(X, "coords") or not hasattr(X, "sizes"):
        return {}
    same = all(dim in X.sizes and X.sizes[dim] == size for dim, size in zip(dims, shape, strict=True))
    kept = {name: one for name, one in X.coords.items() if same and set(one.dims) <= set(dims)}
    return {
        f"{name}_" if name in _TAKEN else name: one.variable if name in _TAKEN else one for name, one in kept.items()
    }


def _units(stream: Any, name: str) -> dict[str, str]:
    """The unit of the source, for what has it too."""
    units = stream.attributes.get("units")
    return {"units": units} if units is not None and name in (DATA, "mean", "std") else {}


def _column(times: list[Any]) -> NDArray[Any]:
    dated = all(isinstance(one, np.datetime64) for one in times)
    return np.array(times, "datetime64[ns]") if dated else np.array(times)


def _check_folder(out: Path) -> None:
    if find_spec("dask") is None:
        raise RunError("out needs dask, to read results when they are used: pip install 'undertow[dask]'")
    if (out / "zarr.json").exists():
        raise RunError(f"out must be a new folder, {out} holds results already: remove it, or name another")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"out must be a new folder, {out} is there already: remove it, or name another")


def _check_size(stream: Stream) -> None:
    size = 4 * 8 * math.prod(stream.shape) * (stream.length or 0)
    if size > MOST_BYTES:
        raise RunError(
            f"the results of {stream.name} would take {size / 2**30:.1f} GiB of memory: name a folder for them with "
            "out=…, or choose parts with select=…"
        )


def _without_names(X: Any, reading: dict[str, Any]) -> dict[str, Any]:
    """An array has axes without names: time="time" means the first, as everywhere."""
    named = isinstance(X, (str, os.PathLike)) or hasattr(X, "dims") or hasattr(X, "columns")
    if not named and reading.get("time") == "time":
        return {name: value for name, value in reading.items() if name != "time"}
    return reading


def _check_options(reading: dict[str, Any]) -> None:
    """Of `open_stream`, whatever is left."""
    known = [*inspect.signature(open_stream).parameters][1:]
    for name in reading:
        if name not in known:
            near = get_close_matches(name, [*known, *inspect.signature(clean).parameters], 1)
            meant = (
                f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}, and those of help(ut.clean)."
            )
            raise TypeError(f"clean has no option {name!r}: {meant}")


def _xarray() -> Any:
    try:
        import xarray
    except ModuleNotFoundError:
        raise RunError("clean needs xarray: pip install 'undertow[store]'") from None
    return xarray
