"""Slices of other libraries: which are labelled, and those that only lend their memory (torch, CuPy, JAX)."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from undertow.inputs.labels.names import Labels
from undertow.inputs.labels.pandas_frames import parsed_pandas
from undertow.inputs.labels.placing import Parsed, Way, placed
from undertow.inputs.labels.polars_frames import parsed_polars
from undertow.inputs.labels.xarrays import parsed_array


class Taken(NamedTuple):
    """A slice as the stream has it, in NumPy.

    Attributes:
        x: The values.
        mask: Which are observed, or None.
        labels: Of the stream, from now on.
        way: Back to what was given; None where that is NumPy too.
    """

    x: Any
    mask: Any
    labels: Labels | None
    way: Way | None = None


def taken(x: Any, mask: Any, labels: Labels | None, shape: tuple[int, ...] | None) -> Taken:
    """Put a slice of any library in the order of its stream.

    Args:
        x: The slice.
        mask: True where observed, labelled or in the order of `x`; or None.
        labels: Of the stream; None if it has none so far.
        shape: Of the stream; None before its first slice.

    Raises:
        TypeError: It does not hold numbers.
        ValueError: Its modes or labels are not those of the stream.
    """
    if type(x) is np.ndarray:  # most slices are: they pay for nothing here
        return Taken(x, _plain(mask), labels)
    found = parsed(x)
    if found is None:
        return Taken(_plain(x), _plain(mask), labels)
    observed = None
    if mask is not None:
        found, observed = _masked(x, found, mask, labels, shape)
    values, made, way = placed(found, labels, shape)
    return Taken(values, observed, made, way)


def parsed(x: Any) -> Parsed | None:
    """The slice, if it is labelled. Libraries are known by their loaded modules: none is imported for this."""
    kind = type(x)
    package = kind.__module__.partition(".")[0]
    if package == "polars" or (package not in ("numpy", "jaxlib", "jax") and _is(x, "polars", ("DataFrame", "Series"))):
        return parsed_polars(x)
    if _is(x, "xarray", ("DataArray",)):
        return parsed_array(x)
    if _is(x, "xarray", ("Dataset",)):
        names = ", ".join(map(str, x.data_vars))
        raise TypeError(
            f"x must be one array, got an xarray.Dataset of {names or 'nothing'}: choose one, or to_dataarray()."
        )
    if _is(x, "pandas", ("DataFrame", "Series")):
        return parsed_pandas(x)
    return None


def _is(x: Any, package: str, names: tuple[str, ...]) -> bool:
    module = sys.modules.get(package)
    return module is not None and isinstance(x, tuple(getattr(module, name) for name in names))


def _plain(x: Any) -> Any:
    """An array of another library as one of NumPy, without a copy where it is on the CPU."""
    if x is None or isinstance(x, (np.ndarray, list, tuple)) or not hasattr(x, "__dlpack__"):
        return x
    if hasattr(x, "__array__") and not hasattr(x, "detach") and not hasattr(x, "get"):
        return x  # JAX, and others that NumPy takes as they are
    if hasattr(x, "detach"):  # torch
        x = x.detach()
    try:
        return np.from_dlpack(x.cpu() if hasattr(x, "cpu") else x.get() if hasattr(x, "get") else x)
    except (BufferError, TypeError, RuntimeError) as error:
        kind = f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}"
        raise TypeError(
            f"x must hold numbers that NumPy has too, got {kind} of {getattr(x, 'dtype', 'another type')} ({error}): "
            "convert it to float32 first."
        ) from None


def _masked(
    x: Any, found: Parsed, mask: Any, labels: Labels | None, shape: tuple[int, ...] | None
) -> tuple[Parsed, Any]:
    """A mask in the order of the slice is combined with its values; a labelled one is put in order on its own."""
    other = parsed(mask)
    if other is not None:
        names = labels
        if names is None:
            _, names, _ = placed(found, None, None)
        values, _, _ = placed(other, names, shape)
        return found, np.nan_to_num(np.asarray(values, np.float64)).astype(bool)
    plain = np.asarray(_plain(mask))
    own = tuple(getattr(x, "shape", ()))
    if plain.shape != own:
        raise ValueError(
            f"mask must have the shape of x, {own}, got {plain.shape}: give one True or False per entry of x."
        )
    if plain.dtype.kind not in "biuf":
        raise TypeError(f"mask must hold True and False (or 1 and 0), got dtype {plain.dtype}: use mask.astype(bool).")
    plain = plain.astype(bool)
    if np.shape(found.values) == own:
        return replace(found, values=np.where(plain, found.values, np.nan)), None
    hidden = parsed(x.where(plain)) if hasattr(x, "where") else None
    if hidden is None:
        raise TypeError("mask must not be given with such a frame of polars: put null where nothing was observed.")
    return hidden, None
