"""What a stream is: its name, the shape of its slices, names and labels of their modes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from undertow.incidents import Incidents
from undertow.inputs.dense import MAX_MODES
from undertow.service.errors import Invalid, TooLarge
from undertow.service.settings import Limits

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Names of streams: nothing that means something to a file system, an address or a page."""
LABEL_LENGTH = 200
_NAME = re.compile(NAME)


@dataclass(frozen=True)
class Spec:
    """What a client says about a stream when it creates it.

    Attributes:
        shape: Of a slice.
        dims: One name for each mode.
        labels: For each mode the labels of its rows, or None.
        false_alarms: False incidents that are accepted, as `undertow.incidents.Incidents` takes it.
        step: Seconds between slices, where their times do not say it.
    """

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]
    false_alarms: str | None = None
    step: float | None = None

    @property
    def entries(self) -> int:
        """Of a slice."""
        return math.prod(self.shape)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Spec:
        """What `to_json` gave."""
        labels = tuple(None if one is None else tuple(one) for one in given["labels"])
        return cls(tuple(given["shape"]), tuple(given["dims"]), labels, given["false_alarms"], given["step"])

    def incidents(self) -> Incidents:
        """A watch that has seen nothing."""
        return Incidents(self.shape, self.labels, self.false_alarms, self.step, self.dims)

    def labels_of(self, position: tuple[int, ...]) -> list[str]:
        """Of one entry; numbers where there are none."""
        pairs = zip(self.labels, position, strict=True)
        return [str(index) if labels is None else labels[index] for labels, index in pairs]


def checked_name(name: str) -> str:
    """The name of a stream.

    Raises:
        Invalid: It is none.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"a stream's name has 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or digit, got {name!r}"
        )
    return name


def checked_spec(given: Mapping[str, Any], limits: Limits) -> Spec:
    """What a client asked for, checked.

    Raises:
        Invalid: It contradicts itself.
        TooLarge: Slices have more entries than are allowed.
    """
    shape = tuple(given["shape"])
    if not 1 <= len(shape) <= MAX_MODES or any(size < 1 for size in shape):
        raise Invalid(f"shape must have 1 to {MAX_MODES} modes of size 1 or more, got {list(shape)}")
    if math.prod(shape) > limits.entries:
        raise TooLarge(f"slices may have {limits.entries} entries, got {math.prod(shape)}: use smaller ones")
    dims = given.get("dims") or [f"mode_{mode}" for mode in range(len(shape))]
    if len(dims) != len(shape) or len(set(dims)) != len(dims):
        raise Invalid(f"dims must be {len(shape)} different names, one for each mode, got {dims}")
    labels = given.get("labels") or [None] * len(shape)
    for text in (*dims, *(label for one in labels if one is not None for label in one)):
        if len(text) > LABEL_LENGTH:
            raise Invalid(f"names and labels have at most {LABEL_LENGTH} characters, got {len(text)}")
    spec = Spec(
        shape,
        tuple(dims),
        tuple(None if one is None else tuple(one) for one in labels),
        given.get("false_alarms"),
        given.get("step"),
    )
    try:
        spec.incidents()
    except (ValueError, TypeError) as error:
        raise Invalid(str(error)) from error
    return spec
