"""`xarray.DataArray` as a slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.names import Label, plain_labels
from undertow.inputs.labels.placing import Coords, Parsed


@dataclass(frozen=True, eq=False)
class DataArrayForm:
    """The slice without its values: dims, coordinates, attributes and name."""

    like: Any

    def build(self, values: NDArray[Any], replaced: Coords) -> Any:
        """Another array with the same labels."""
        like = self.like
        changed = {dim: labels for dim, labels in zip(like.dims, replaced, strict=True) if labels is not None}
        if not changed:
            return like.copy(data=values)
        kept = {name: one for name, one in like.coords.items() if not set(one.dims) & set(changed)}
        coords = kept | {dim: _column(labels) for dim, labels in changed.items()}
        return type(like)(values, coords, like.dims, name=like.name, attrs=like.attrs)


def parsed_array(x: Any) -> Parsed:
    """A slice with names and labels."""
    coords = tuple(_labels(x, dim) for dim in x.dims)
    values = np.asarray(x.data)  # of a lazy array this computes it
    nothing = np.broadcast_to(np.zeros((), np.float32), x.shape)  # results outlive slices: hold no values
    return Parsed(values, tuple(map(str, x.dims)), coords, DataArrayForm(x.copy(data=nothing)))


def _labels(x: Any, dim: Any) -> tuple[Label, ...] | None:
    index = x.indexes.get(dim)
    if index is None or x.sizes[dim] == 0:
        return None
    return plain_labels(index.values if index.dtype.kind in "mM" else index)


def _column(labels: tuple[Label, ...]) -> NDArray[Any]:
    column = np.empty(len(labels), object)
    column[:] = labels
    return np.array(labels) if {type(label) for label in labels} <= {str, int} or _dated(labels) else column


def _dated(labels: tuple[Label, ...]) -> bool:
    return all(isinstance(label, (np.datetime64, np.timedelta64)) for label in labels)
