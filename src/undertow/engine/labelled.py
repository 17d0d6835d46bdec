"""A model that knows what its modes and their rows are called."""

from __future__ import annotations

from typing import Any

from undertow.engine.exclusive import Exclusive, exclusive
from undertow.inputs.dense import peek_shape
from undertow.inputs.labels.names import Labels, named_labels
from undertow.inputs.labels.placing import Way
from undertow.inputs.labels.slices import Taken, taken


class LabelledModel(Exclusive):
    """Keeps the labels of a stream."""

    _labels: Labels | None = None
    _way: Way | None = None

    @property
    def labels(self) -> Labels | None:
        """Names of the modes (`dims`) and labels along each (`coords`), from the first labelled slice; else None.

        May be set before that slice, so that labels which it lacks are known: a mapping from the name of each mode to
        its labels, or to None where it has none. They are saved with the model.

        Examples:
            >>> import undertow as ut
            >>> tracker = ut.Tracker()
            >>> tracker.labels = {"src": ["A", "B", "C"], "dst": ["A", "B", "C"]}
            >>> tracker.labels.dims
            ('src', 'dst')
        """
        return None if self._labels is None else self._labels.known()

    @labels.setter
    @exclusive
    def labels(self, given: Any) -> None:
        labels, shape = named_labels(given), self._slice_shape()
        if labels is not None and shape is not None:
            labels.check(shape)
        self._labels = labels

    def _slice_shape(self) -> tuple[int, ...] | None:
        """Of the slices so far; None before the first."""
        raise NotImplementedError

    def _taken(self, x: Any, mask: Any, shape: tuple[int, ...] | None) -> Taken:
        """A slice of any library as the stream has it."""
        found = taken(x, mask, self._labels, shape)
        if shape is None and self._labels is not None and found.way is None:
            self._labels.check(peek_shape(found.x))  # labels were given first
        return found

    def _keep(self, given: Taken) -> Way | None:
        """Keep the labels of a slice that was learned; how its results go back."""
        self._labels, self._way = given.labels, given.way
        return given.way
