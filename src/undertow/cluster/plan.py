"""What all shards have in common: how the columns of a table become slices, and what every member is."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from undertow.estimator import RobustCP
from undertow.fleet import validated_config
from undertow.incidents.rate import FalseAlarms
from undertow.inputs.labels.growing import MOST_LABELS
from undertow.tracker.estimator import Tracker


@dataclass(frozen=True)
class Plan:
    """Plain values only, so that it travels to other processes and into the state of a shard.

    Attributes:
        key: Column with the name of the stream.
        time: Column with the time of the slice.
        value: Column with the value of an entry; of packed slices, with all entries.
        modes: Columns with the labels of an entry, one for every mode; none where slices come packed.
        labels: Of every mode; none where slices come packed, or where labels of that mode come and go.
        shape: Of a slice.
        model: "tracker" or "cp".
        params: Settings of CP models; of trackers their period, if they have seasons.
        false_alarms: How many false incidents are accepted; None where no incidents are looked for.
        ttl: How long, in units of the time, a stream may be silent before it is forgotten; None for ever.
        dates: Whether times are microseconds since 1970, not plain numbers.
    """

    key: str
    time: str
    value: str
    modes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    shape: tuple[int, ...]
    model: str
    params: dict[str, Any]
    false_alarms: str | None = None
    ttl: int | None = None
    dates: bool = True

    @property
    def grows(self) -> bool:
        """Whether labels of some mode come and go."""
        return not all(self.labels)

    @property
    def entries(self) -> int:
        """Of a slice."""
        return math.prod(self.shape)

    def header(self) -> dict[str, Any]:
        """What a state must agree with, as plain JSON."""
        kept = asdict(self)
        return {name: _listed(kept[name]) for name in ("modes", "labels", "shape", "model", "params", "dates")}


def plan(
    key: str,
    time: str,
    modes: Any,
    value: str,
    model: Any,
    *,
    false_alarms: str | float | None = None,
    ttl: int | None = None,
    dates: bool = True,
) -> Plan:
    """A plan, from what the user gave.

    Args:
        key: Column with the name of the stream.
        time: Column with the time of the slice.
        modes: Name of the column of every mode, with its labels, or with the number of labels that there may be at a
            time; or the shape of slices that come packed.
        value: Column with the value or the values.
        model: A new `Tracker` or `RobustCP`.
        false_alarms: As `undertow.Incidents` has it; None looks for none.
        ttl: In units of the time.
        dates: Whether times are dates.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A mode has no labels or one twice, or the model has seen slices or has settings not for fleets.
    """
    for name, column in (("key", key), ("time", time), ("value", value)):
        if not isinstance(column, str):
            raise TypeError(f"{name} must be the name of a column, got {column!r}.")
    names, labels, shape = _modes(modes)
    kind, params = members_like(model)
    if false_alarms is not None:
        asked = FalseAlarms.parse(false_alarms)
        if asked.kind == "time" and not dates:
            raise ValueError(
                f"false_alarms={asked.text!r} needs times that are dates: give a rate per slices, such as '1/1000'."
            )
        false_alarms = asked.text
    return Plan(key, time, value, names, labels, shape, kind, params, false_alarms, ttl, dates)


def members_like(model: Any) -> tuple[str, dict[str, Any]]:
    """What `undertow.Fleet` must be given so that its members are like this model: its kind, and settings."""
    if isinstance(model, Tracker):
        if model._slice_shape() is not None:
            raise ValueError("model must be new: every stream gets its own, and this tracker has seen slices.")
        if model.believed_after is not None:
            raise ValueError("the trackers of a fleet believe changes when chance has it: leave believed_after out.")
        if model.grow:
            raise ValueError("labels of a fleet's trackers come and go by modes={'src': 16}: leave grow out.")
        return "tracker", {} if model.period is None else {"period": model.period}
    if isinstance(model, RobustCP):
        if model._slice_shape() is not None:
            raise ValueError("model must be new: every stream gets its own, and this one has seen slices.")
        params = {name: value for name, value in model.get_params().items() if value is not None}
        validated_config("cp", params["preset"], {name: one for name, one in params.items() if name != "preset"})
        return "cp", params
    raise TypeError(f"model must be an undertow.Tracker or an undertow.RobustCP, got {type(model).__name__}.")


def _modes(modes: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[int, ...]]:
    """Names, labels and sizes of the modes; the first two are empty where slices come packed."""
    if isinstance(modes, Mapping):
        if not modes:
            raise ValueError("modes must name one column at least, with its labels.")
        found, sizes = [], []
        for name, known in modes.items():
            places = known if isinstance(known, int) and not isinstance(known, bool) else None
            labels = () if places is not None else tuple(str(label) for label in known)
            if places is None and (not labels or len(set(labels)) < len(labels)):
                raise ValueError(
                    f"modes must have each label once, and one at least: {name!r} has {len(labels)} labels."
                )
            if places is not None and not 1 <= places <= MOST_LABELS:
                raise ValueError(
                    f"modes must allow 1 to {MOST_LABELS} labels at a time, got {places} for {name!r}: take less."
                )
            found.append(labels)
            sizes.append(len(labels) if places is None else places)
        return tuple(modes), tuple(found), tuple(sizes)
    if isinstance(modes, Sequence) and not isinstance(modes, str) and modes:
        try:
            shape = tuple(operator.index(size) for size in modes)
        except TypeError:
            shape = ()
        if shape and min(shape) > 0:
            return (), (), shape
    raise ValueError(
        "modes must be {column: its labels, or how many there may be}, or the shape of slices that come packed, such "
        f"as (12, 12), got {modes!r}."
    )


def _listed(value: Any) -> Any:
    """Tuples as JSON has them."""
    return [_listed(one) for one in value] if isinstance(value, tuple) else value
