"""Labels of a run that come and go: which slots of its store have a place in the model.

A slot belongs to one label for ever, since results are stored by slot. A place is lent: whoever is not observed for
long leaves it, the model forgets them, and it goes to the next label that comes. So a model is as large as the labels
that are there together, however many come in the course of years.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels import growing
from undertow.inputs.labels.names import FREE
from undertow.ladder import rung
from undertow.runs.default_model import extend, update
from undertow.serialization import container
from undertow.sources.capacity import LabelSlots

Slots = NDArray[np.int64]
NONE = -1
"""In place of a place, or of the slice in which a slot was observed."""
_NAMED = ("changed", "dead")  # entries by their positions
_ZERO = ("outliers", "outlier_probability")  # where nothing was observed; other arrays are NaN


class Places:
    """Of the slots of a stream; as long as nobody has left, the place of each is its own number.

    Args:
        shape: Of the first slice.
        labels: Of the stream; those that are `LabelSlots` come and go.
    """

    def __init__(self, shape: Sequence[int], labels: Sequence[Any]) -> None:
        self._lent = [mode for mode, known in enumerate(labels) if isinstance(known, LabelSlots)]
        self._place = [np.arange(size) for size in shape]
        self._heard = [np.full(size, NONE) for size in shape]
        self._sizes = list(shape)

    def retire(self, model: Any, index: int) -> list[tuple[int, Slots]]:
        """Let go of who was not observed for long; a model that cannot `forget` keeps all.

        Args:
            model: As `undertow.Tracker`.
            index: Of the next slice, counted from 0.

        Returns:
            Slots that have no place any more, by mode.
        """
        if not index or not hasattr(model, "forget"):
            return []
        silent = [
            (mode, np.flatnonzero((heard != NONE) & (place != NONE) & (index - heard - 1 > growing.SILENT)))
            for mode, (heard, place) in enumerate(zip(self._heard, self._place, strict=True))
            if mode in self._lent
        ]
        silent = [(mode, slots) for mode, slots in silent if len(slots)]
        if not silent:
            return []
        named = {mode: self._place[mode][slots].tolist() for mode, slots in silent}
        try:
            model.forget([named.get(mode, []) for mode in range(len(self._place))])
        except ValueError:  # one that keeps observed entries only
            return []
        for mode, slots in silent:
            self._place[mode][slots] = NONE
        return silent

    def learn(self, model: Any, values: NDArray[Any], time: Any, index: int) -> Any:
        """The model's result for a slice, both by slot; who has come is given a place first.

        Args:
            model: As `undertow.Tracker`.
            values: The slice.
            time: Of the slice.
            index: Of the slice, counted from 0.
        """
        if not self._lent:
            return update(model, values, time)
        seen, modes, before = ~np.isnan(values), range(values.ndim), list(self._sizes)
        observed = {mode: seen.any(axis=tuple(other for other in modes if other != mode)) for mode in self._lent}
        for mode in self._lent:
            self._seat(mode, observed[mode])
        if index and self._sizes != before:
            extend(model, self._sizes)
        moved = [np.copy(place) for place in self._place]
        if all((place == np.arange(len(place))).all() for place in moved):
            result = update(model, values, time)
        else:
            packed = np.full(self._sizes, np.nan, values.dtype)
            slots = [np.flatnonzero(place != NONE) for place in moved]
            packed[np.ix_(*(place[one] for place, one in zip(moved, slots, strict=True)))] = values[np.ix_(*slots)]
            result = BySlot(update(model, packed, time), moved, tuple(self._sizes))
        for mode in self._lent:
            self._heard[mode][observed[mode]] = index
        return result

    def labels(self, labels: Sequence[Any]) -> list[Any]:
        """Of the places of the model, None where a mode has none.

        Args:
            labels: Of the slots.
        """
        found = []
        for known, place, size in zip(labels, self._place, self._sizes, strict=True):
            who = np.full(size, NONE)
            who[place[place != NONE]] = np.flatnonzero(place != NONE)
            found.append(
                None if known is None else tuple(FREE(n) if slot == NONE else known[slot] for n, slot in enumerate(who))
            )
        return found

    def to_bytes(self) -> bytes:
        """Everything; nothing where no labels come and go."""
        if not self._lent:
            return b""
        pairs = enumerate(zip(self._place, self._heard, strict=True))
        arrays = {
            f"{name}.{mode}": one for mode, pair in pairs for name, one in zip(("place", "heard"), pair, strict=True)
        }
        return container.to_bytes({"sizes": self._sizes}, arrays)

    def restore(self, content: bytes) -> None:
        """Go on from what `to_bytes` gave."""
        header, arrays = container.from_bytes(content, "of labels")
        self._sizes = list(header["sizes"])
        self._place, self._heard = (
            [arrays[f"{name}.{n}"] for n in range(len(self._sizes))] for name in ("place", "heard")
        )

    def _seat(self, mode: int, observed: NDArray[np.bool_]) -> None:
        """Places for slots that have come: for all as long as nobody has left, later for those that are observed."""
        had, size = self._place[mode], self._sizes[mode]
        new = np.full(len(observed) - len(had), NONE)
        place, everybody = np.concatenate([had, new]), (had != NONE).all()
        self._heard[mode] = np.concatenate([self._heard[mode], new])
        wanting = np.flatnonzero((place == NONE) & (observed | everybody))
        free = np.setdiff1d(np.arange(size), place)
        if len(wanting) > len(free):
            self._sizes[mode] = min(rung(size + len(wanting) - len(free)), len(place))
            free = np.concatenate([free, np.arange(size, self._sizes[mode])])
        place[wanting] = free[: len(wanting)]
        self._place[mode] = place


class BySlot:
    """A result by place, as one by slot: nothing is known of slots without a place. Looked at when asked for.

    Args:
        result: Of the model.
        places: Of all slots, by mode.
        shape: Of the model's slices.
    """

    def __init__(self, result: Any, places: Sequence[Slots], shape: tuple[int, ...]) -> None:
        self._result, self._places, self._shape = result, places, shape

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._result, name)
        if not isinstance(found, np.ndarray) or found.shape != self._shape:
            return found
        slots = [np.flatnonzero(place != NONE) for place in self._places]
        made = np.full([len(place) for place in self._places], 0 if name in _ZERO else np.nan, found.dtype)
        made[np.ix_(*slots)] = found[np.ix_(*(place[one] for place, one in zip(self._places, slots, strict=True)))]
        return made

    @cached_property
    def events(self) -> Any:
        """What is wrong beyond single entries, by name."""
        found = getattr(self._result, "events", None)
        if found is None:
            return None
        slot = [np.full(size, NONE) for size in self._shape]
        for one, place in zip(slot, self._places, strict=True):
            one[place[place != NONE]] = np.flatnonzero(place != NONE)
        rows = tuple((mode, int(slot[mode][row])) for mode, row in found.rows if slot[mode][row] != NONE)
        entries = {}
        for name in _NAMED:
            at = [one[where] for one, where in zip(slot, getattr(found, name), strict=False)]
            taken = np.all([one != NONE for one in at], axis=0)
            entries[name] = tuple(one[taken] for one in at)
        return replace(found, rows=rows, **entries)
