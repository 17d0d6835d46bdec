"""Settings and slices of baselines, checked once; slices by the library's own validation (`undertow.inputs`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import jax
import numpy as np

from undertow.inputs.dense import as_slice
from undertow.lab.baselines.baseline import Array, Mask


def check_settings(
    config: Any,
    *,
    integer: Sequence[str] = (),
    positive: Sequence[str] = (),
    not_negative: Sequence[str] = (),
    fraction: Sequence[str] = (),
) -> None:
    """Settings must be integers of at least 1, above 0, at least 0, fractions in (0, 1], or one of their Literal type.

    Example:
        >>> from undertow.lab.baselines import METHODS
        >>> METHODS["olstec"].configure(rank=0)
        Traceback (most recent call last):
        ...
        ValueError: rank must be an integer of at least 1, got 0
    """
    for names, fits, words in (
        (integer, lambda x: isinstance(x, (int, np.integer)) and x is not True and x >= 1, "an integer of at least 1"),
        (positive, lambda x: np.isfinite(x) and x > 0, "above 0"),
        (not_negative, lambda x: np.isfinite(x) and x >= 0, "0 or more"),
        (fraction, lambda x: 0 < x <= 1, "above 0 and at most 1"),
    ):
        for name in names:
            if not fits(getattr(config, name)):
                raise ValueError(f"{name} must be {words}, got {getattr(config, name)!r}")
    for name, hint in get_type_hints(type(config)).items():
        if get_origin(hint) is Literal and getattr(config, name) not in get_args(hint):
            choices = ", ".join(map(repr, get_args(hint)))
            raise ValueError(f"{name} must be one of {choices}, got {getattr(config, name)!r}")


def check_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a slice: at least one mode, every mode at least one entry long."""
    modes = tuple(shape)
    if not modes or not all(isinstance(size, (int, np.integer)) and size >= 1 for size in modes):
        raise ValueError(f"shape must hold one positive integer for each mode of a slice, got {shape!r}")
    return tuple(int(size) for size in modes)


def observe(values: Any, mask: Any, shape: tuple[int, ...]) -> tuple[Array, Mask]:
    """A fresh double-precision copy of the slice with zeros where nothing was observed, and the mask of what was."""
    checked = as_slice(values, mask, shape=shape)
    return np.array(checked.values, dtype=np.float64), checked.mask


def observe_all(values: Any, mask: Any, shape: tuple[int, ...], method: str) -> Array:
    """As observe, for a method that knows no missing data."""
    numbers, observed = observe(values, mask, shape)
    if not observed.all():
        missing = int(observed.size - observed.sum())
        raise ValueError(
            f"{method} needs every entry of a slice, got {missing} missing of {observed.size}: "
            "fill them in first or choose a method for incomplete data"
        )
    return numbers


def finite(*trees: Any) -> bool:
    """Is every number in these arrays and tuples of arrays finite? What is not must never enter a state."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(trees))
