"""Validation of the slices of a fleet: one per member, as an array or by member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice, as_slice, peek_shape

Members = NDArray[np.int64]


def as_member_slices(
    x: Any, mask: Any, present: Any, members: Members, shape: tuple[int, ...]
) -> tuple[Slice, NDArray[np.bool_]]:
    """Validate the next slices of a fleet.

    Args:
        x: (n, *shape) in the order of `members`, or a dictionary from number to slice.
        mask: True where observed, as `x`; or None.
        present: (n,), False for those who have no slice; or None. Not with a dictionary.
        members: The numbers of all members, ascending.
        shape: Shape of a slice.

    Returns:
        The slices (n, *shape), with nothing observed for those who are absent, and who is present (n,).
    """
    if isinstance(x, Mapping):
        return _from_mapping(x, mask, present, members, shape)
    n, wanted = len(members), (len(members), *shape)
    here = np.ones(n, np.bool_) if present is None else np.asarray(present)
    if here.shape != (n,) or here.dtype.kind != "b":
        raise ValueError(
            f"present must be {n} times True or False, one per member, got {here.dtype} of shape {here.shape}."
        )
    if peek_shape(x) != wanted:
        raise ValueError(f"x must have shape {wanted}, a slice for each of the {n} members, got {peek_shape(x)}.")
    if not here.all():  # values of absent members are ignored, whatever they are
        there = np.broadcast_to(here.reshape(-1, *([1] * len(shape))), wanted)
        mask = there if mask is None else there & np.asarray(mask)
    try:
        return as_slice(x, mask, streams=True), here.copy()
    except ValueError:
        _name_infinite_members(x, mask, members)
        raise


def times_of(time: Any, members: Members) -> list[Any] | None:
    """The time of every member's slice: one for all, one for each in the order of `members`, or by number.

    Raises:
        ValueError: There are fewer or more of them than members.
        KeyError: A number is not a member.
    """
    if time is None:
        return None
    if isinstance(time, Mapping):
        positions_of(members, np.asarray(list(time)))
        return [time.get(member) for member in members.tolist()]
    if isinstance(time, str) or not hasattr(time, "__len__"):
        return [time] * len(members)
    if len(time) != len(members):
        raise ValueError(f"time must be one time, or one for each of the {len(members)} members, got {len(time)}.")
    return list(time)


def positions_of(members: Members, ids: NDArray[Any]) -> NDArray[np.intp]:
    """Where these numbers stand in `members`, which ascend.

    Raises:
        TypeError: They are not integers.
        KeyError: One of them is not a member.
        ValueError: One is named twice.
    """
    if ids.size == 0:
        return np.zeros(0, np.intp)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError(f"members have integers as numbers, got {ids.tolist()!r}.")
    found = np.searchsorted(members, ids)
    known = np.isin(ids, members)
    if not known.all():
        raise KeyError(f"member {ids[~known][0]} is not in the fleet: it has left, or never joined.")
    if len(np.unique(ids)) < len(ids):
        raise ValueError("a member is named twice: name each once.")
    return found


def _from_mapping(
    x: Mapping[int, Any], mask: Any, present: Any, members: Members, shape: tuple[int, ...]
) -> tuple[Slice, NDArray[np.bool_]]:
    if present is not None or not isinstance(mask, (Mapping, type(None))):
        raise TypeError("with x as a dictionary, mask must be one too and present is who is in it: leave it out.")
    positions, validated = positions_of(members, np.asarray(list(x))), []
    for member, one in x.items():
        try:
            validated.append(as_slice(one, None if mask is None else mask.get(member), shape=shape))
        except (TypeError, ValueError) as error:
            raise type(error)(f"member {member}: {error}") from None
    wanted = len(members), *shape
    values = np.zeros(wanted, np.result_type(np.float32, *(one.values.dtype for one in validated)))
    observed, (here, filled) = np.zeros(wanted, np.bool_), np.zeros((2, len(members)), np.bool_)
    for position, one in zip(positions, validated, strict=True):
        values[position], observed[position], here[position], filled[position] = one.values, one.mask, True, one.filled
    return Slice(values, observed, filled), here


def _name_infinite_members(x: Any, mask: Any, members: Members) -> None:
    """Raise an error that names the member with infinite entries, if there is one."""
    values = np.ma.filled(x, np.nan) if isinstance(x, np.ma.MaskedArray) else np.asarray(x, np.float64)
    infinite = np.isinf(values) if mask is None else np.isinf(values) & np.asarray(mask, np.bool_)
    bad = np.flatnonzero(infinite.reshape(len(members), -1).any(axis=1))
    if bad.size:
        raise ValueError(
            f"member {members[bad[0]]}: x must be finite where observed, and {bad.size} of {len(members)} members "
            "have infinite entries: set them to NaN if they are missing"
        ) from None
