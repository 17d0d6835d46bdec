"""A slice split over devices: what they send each other per sweep, what each must hold, how long a step takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.cluster.sharded import Cost, ShardedCP, cost
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable

HEADINGS = (
    "slice",
    "devices",
    "sent per sweep",
    "sent besides",
    "memory of each",
    "first step",
    "step",
    "on the devices",
    "sweeps",
)
TRUE_RANK, NOISE, OUTLIERS, MISSING = 3, 0.1, 0.02, 0.1


def sharded(
    shapes: Sequence[tuple[int, int]], slices: int, seed: int, settings: dict[str, Any], reporter: Reporter
) -> tuple[StudyTable, list[dict[str, Any]]]:
    """One row per shape.

    Args:
        shapes: Of slices.
        slices: Steps that are timed, after the first; 0 to compile only.
        seed: Of the slices.
        settings: Of the model.
        reporter: Progress.
    """
    import jax

    reporter.begin(len(shapes))
    numbers = []
    for shape in shapes:
        reporter.start("×".join(map(str, shape)), 1)
        numbers.append(_measured(shape, slices, seed, settings))
        reporter.done()
    devices = jax.devices()
    named = ", ".join(f"{name}={value}" for name, value in settings.items())
    title = f"One CP model over {len(devices)} × {devices[0].device_kind}, {named}"
    return StudyTable(title, HEADINGS, [_row(one) for one in numbers]), numbers


def _measured(shape: tuple[int, int], slices: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    import jax

    if not slices:
        return _numbers(shape, len(jax.devices()), cost(shape, **settings))
    model, seconds, inside, sweeps = ShardedCP(**settings), list[float](), list[float](), 0
    for x in _stream(shape, slices + 1, seed):
        begin = time.perf_counter()
        sweeps = int(model.update(x).iterations)  # waits for the device
        seconds.append(time.perf_counter() - begin)
        if len(seconds) == 1:
            compiled = model._compiled
            model._compiled = _timed(compiled, inside)
    model._compiled = compiled
    peaks = [(device.memory_stats() or {}).get("peak_bytes_in_use") for device in jax.local_devices()]
    return {
        **_numbers(shape, len(jax.devices()), model.cost()),
        "first_seconds": seconds[0],
        "seconds": float(np.median(seconds[1:])),
        "device_seconds": float(np.median(inside)),
        "sweeps": sweeps,
        "peak_bytes": max((one for one in peaks if one is not None), default=None),
    }


def _timed(compiled: Any, seconds: list[float]) -> Any:
    """The same step, alone: without checking the slice and bringing it to the devices."""
    import jax

    ready: Any = jax.block_until_ready

    def step(*arguments: Any) -> Any:
        ready(arguments)
        begin = time.perf_counter()
        made = ready(compiled(*arguments))
        seconds.append(time.perf_counter() - begin)
        return made

    return step


def _numbers(shape: tuple[int, int], devices: int, found: Cost) -> dict[str, Any]:
    sent = found.communication
    return {
        "shape": shape,
        "devices": devices,
        "sweep_bytes": sent.sweep,
        "rest_bytes": sent.rest,
        "memory_bytes": found.memory,
    }


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    peak = f", peak {one['peak_bytes'] / 2**30:.1f} GiB" if one.get("peak_bytes") else ""
    timed = (
        (*(f"{one[name]:.3g} s" for name in ("first_seconds", "seconds", "device_seconds")), str(one["sweeps"]))
        if "seconds" in one
        else ("–", "–", "–", "–")
    )
    return (
        "×".join(map(str, one["shape"])),
        str(one["devices"]),
        f"{one['sweep_bytes']:,} bytes",
        f"{one['rest_bytes']:,} bytes",
        f"{one['memory_bytes'] / 2**20:,.1f} MiB{peak}",
        *timed,
    )


def _stream(shape: tuple[int, int], slices: int, seed: int) -> Iterator[NDArray[Any]]:
    """A low rank that drifts, noise, a few gross outliers, gaps; in single precision, made row by row."""
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((size, TRUE_RANK), np.float32) for size in shape)
    for _ in range(slices):
        x: NDArray[Any] = (left * rng.standard_normal(TRUE_RANK, np.float32)) @ right.T
        for row in x:
            row += NOISE * rng.standard_normal(row.size, np.float32)
            chance = rng.random(row.size, np.float32)
            row[chance < OUTLIERS] += 10
            row[chance > 1 - MISSING] = np.nan
        yield x
