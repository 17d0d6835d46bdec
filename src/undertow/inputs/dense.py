"""Validation of dense data: one slice of a stream, checked once, before any compiled code sees it.

Whatever a user holds (an array with NaN, a masked array, a labelled array, nested lists) becomes a :class:`Slice`:
finite numbers with 0 where nothing was observed, and a mask. It is not validated again after that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.fill import fill_values

MAX_MODES = 12
"""Modes of a slice: the time to compile grows with their number, 40 of them take minutes."""

_NUMBERS = "biuf"  # kinds of dtype that are real numbers: bool, signed, unsigned, float


@dataclass(frozen=True, eq=False)
class Slice:
    """What was observed at one time step. Both arrays are fresh, C-ordered and read-only.

    Attributes:
        values: float32 where that holds the data exactly, float64 otherwise; 0 where nothing was observed.
        mask: bool of the same shape, True where observed.
        filled: whether well-known fill values were taken as missing; for slices of many streams one answer for each.

    Examples:
        >>> import numpy as np
        >>> as_slice([[1.0, np.nan]]).mask.tolist()
        [[True, False]]
    """

    values: NDArray[np.floating[Any]]
    mask: NDArray[np.bool_]
    filled: Any = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the modes."""
        return self.values.shape


def as_slice(
    x: Any,
    mask: Any = None,
    *,
    shape: Sequence[int] | None = None,
    max_bytes: int | None = None,
    streams: bool = False,
) -> Slice:
    """Validate a slice.

    Shape, size and type are checked before anything is copied, so that a view which claims to be huge
    (``numpy.broadcast_to``) is refused without being allocated.

    Args:
        x: array of real numbers with one or more modes: ``ndarray`` (NaN = not observed), ``numpy.ma.MaskedArray``,
            ``xarray.DataArray`` or nested lists. Values under the mask are ignored, whatever they are.
        mask: True (or 1) where observed, same shape as ``x``; combined with NaN and with the mask of a masked array.
        shape: the shape that the stream has; another one is refused.
        max_bytes: refuse a slice whose values and mask would take more than this.
        streams: whether the first axis counts streams, each with a slice of its own.

    Returns:
        The values and which of them were observed.

    Raises:
        TypeError: ``x`` or ``mask`` does not hold real numbers.
        ValueError: wrong shape, no modes, no entries, too large, or infinite values among the observed.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> made = ut.as_slice([[1.0, np.nan], [3.0, 4.0]])
        >>> made.values[0].tolist(), made.mask[0].tolist()
        ([1.0, 0.0], [True, False])
    """
    if _cheap_shape(x) is None:
        x = _from_lists(x, "x")
    _check_numbers(x)
    actual = peek_shape(x)
    _check_shape(actual, None if shape is None else tuple(int(size) for size in shape))
    dtype = _working_dtype(x)
    if max_bytes is not None and _bytes(actual, dtype) > max_bytes:
        raise ValueError(
            f"x must fit into {max_bytes} bytes, got shape {actual} which takes {_bytes(actual, dtype)}: "
            "cut the slice into smaller ones or allow more memory"
        )
    given = None if mask is None else _as_mask(mask, actual)
    with np.errstate(over="ignore", invalid="ignore"):  # garbage under the mask may overflow; the rest is checked below
        values = np.array(np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else x, dtype=dtype, order="C")
        observed = values == values  # not NaN
        if isinstance(x, np.ma.MaskedArray):
            observed &= ~np.ma.getmaskarray(x)
        if given is not None:
            observed &= given
        if not observed.all():
            _clear(values, observed)
        fill = fill_values(values, streams)
        if fill is not None:
            observed &= ~fill
            _clear(values, observed)
        if not np.isfinite(values.sum()):  # one pass over a video frame; a sum of finite values may overflow too
            _check_finite(values)
    values.flags.writeable = False
    observed.flags.writeable = False
    return Slice(values, observed, _filled(fill, len(values) if streams else None))


def _filled(fill: NDArray[np.bool_] | None, streams: int | None) -> Any:
    """Whether there are fill values; for many streams, in which of them."""
    if streams is None:
        return fill is not None
    return np.zeros(streams, np.bool_) if fill is None else fill.reshape(streams, -1).any(axis=1)


def peek_shape(x: Any) -> tuple[int, ...]:
    """The shape that ``x`` claims to have, without copying or converting it.

    For nested lists it is read off the first element at each depth; :func:`as_slice` finds out whether the rest agrees.
    """
    known = _cheap_shape(x)
    if known is not None:
        return known
    sizes: list[int] = []
    while isinstance(x, (list, tuple)):
        sizes.append(len(x))
        if not x:
            break
        x = x[0]
    inner = _cheap_shape(x) if not isinstance(x, (list, tuple)) else None
    return (*sizes, *(inner or ()))


def _cheap_shape(x: Any) -> tuple[int, ...] | None:
    shape = getattr(x, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(size, (int, np.integer)) for size in shape):
        return tuple(int(size) for size in shape)
    return None


def _from_lists(x: Any, name: str) -> NDArray[Any]:
    if not isinstance(x, (list, tuple, int, float, complex)) and not hasattr(x, "__array__"):
        raise TypeError(
            f"{name} must be an array of real numbers, got {type(x).__name__}: convert it with numpy.asarray first"
        )
    try:
        return np.asarray(x)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be rectangular, got nested lists that numpy refuses ({error}): "
            "make all rows equally long and fill gaps with NaN"
        ) from None


def _dtype_of(x: Any) -> np.dtype[Any] | None:
    try:
        dtype: np.dtype[Any] = np.dtype(x.dtype)
    except (AttributeError, TypeError):
        return None  # a data frame, say: several types or types of its own
    return dtype


def _check_numbers(x: Any) -> None:
    dtype = _dtype_of(x)
    if dtype is None:
        raise TypeError(
            f"x must be an array of real numbers with one dtype, got {type(x).__name__}: "
            "convert it with numpy.asarray(x, dtype=float) first"
        )
    if dtype.kind not in _NUMBERS:
        raise TypeError(
            f"x must hold real numbers, got dtype {dtype}: convert it to float first, with NaN for what is missing"
        )


def _check_shape(actual: tuple[int, ...], wanted: tuple[int, ...] | None) -> None:
    if not actual:
        raise ValueError(
            "x must have at least one mode, got a single number: pass numpy.array([x]) for a stream of them"
        )
    if len(actual) > MAX_MODES:
        raise ValueError(f"x must have at most {MAX_MODES} modes, got {len(actual)}: combine some of them with reshape")
    if math.prod(actual) == 0:
        raise ValueError(
            f"x must have at least one entry, got shape {actual}: leave it out, or pass NaN for what is missing"
        )
    if wanted is not None and actual != wanted:
        raise ValueError(
            f"x must have shape {wanted} like the stream before it, got {actual}: "
            "start a new model for slices of another shape"
        )


def _working_dtype(x: Any) -> np.dtype[Any]:
    dtype = _dtype_of(x)
    widest = 4 if dtype is not None and dtype.kind == "f" else 2  # float32 holds every integer of two bytes
    return np.dtype(np.float32 if dtype is not None and dtype.itemsize <= widest else np.float64)


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * (dtype.itemsize + 1)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if _cheap_shape(mask) is None:
        mask = _from_lists(mask, "mask")
    if peek_shape(mask) != shape:
        raise ValueError(
            f"mask must have the shape of x, {shape}, got {peek_shape(mask)}: give one True or False per entry of x"
        )
    if isinstance(mask, np.ma.MaskedArray):
        raise TypeError("mask must be a plain array, got a masked array: use mask.filled(False)")
    array = np.asarray(mask)
    if array.dtype.kind not in _NUMBERS:
        raise TypeError(f"mask must hold True and False (or 1 and 0), got dtype {array.dtype}: use mask.astype(bool)")
    if array.dtype.kind == "b":
        return array
    if not ((array == 0) | (array == 1)).all():
        raise ValueError(
            f"mask must hold True and False (or 1 and 0), got other values of dtype {array.dtype}: "
            "write the condition for observed out, for example weights > 0"
        )
    return np.asarray(array, dtype=np.bool_)


def _clear(values: NDArray[np.floating[Any]], keep: NDArray[np.bool_]) -> None:
    """Set the others to 0, by their bits: many times quicker than one by one where gaps are strewn at random."""
    bits = values.view(np.dtype(f"i{values.itemsize}"))
    np.multiply(bits, keep, out=bits)


def _check_finite(values: NDArray[np.floating[Any]]) -> None:
    infinite = np.isinf(values)
    count = int(np.count_nonzero(infinite))
    if count:
        first = tuple(int(i) for i in np.unravel_index(int(infinite.argmax()), values.shape))
        raise ValueError(
            f"x must be finite where observed, got {count} infinite of {values.size} entries, the first at {first}: "
            "set them to NaN if they are missing"
        )
