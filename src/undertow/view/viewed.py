"""A model that can be looked at and read: what `Tracker` and `RobustCP` have in common."""

from __future__ import annotations

from typing import Any

from undertow.view import model, notebook
from undertow.view.components import Components
from undertow.view.explanation import Explanation
from undertow.view.model import ModelView
from undertow.view.table import Table


class Viewed:
    """Pictures, tables and explanations of what a model has learned."""

    def plot(self) -> Any:
        """The model as a picture: components by their labels, weights of predictors, rank and noise, calibration.

        What changes over time is of the last 600 slices that this object has seen: kept in memory only, neither saved
        nor part of the state.

        Returns:
            A figure of matplotlib, which notebooks show; `figure.savefig("model.png")` writes it.

        Raises:
            ImportError: Matplotlib is not installed.
            ValueError: No slice has been seen yet.
        """
        return model.draw(self._view("plot"))

    def components(self) -> Table:
        """The components of the low-rank part as a tidy table, one row per component, mode and label.

        Columns: `component` (1 is the largest), `mode`, `label`, `loading` (those of a mode have length 1; on the scale
        of the model), `share` (of the sum of squares of the low-rank part over the window; they need not add up to 1,
        since components overlap), `since` (the first slice in which it was in use, counted from 0; None where nobody
        has seen it begin).

        Returns:
            A sequence of dictionaries; `.to_pandas()` makes a frame of it.
        """
        view = self._view("components")
        return view.components.table(view.names)

    def explain(self, entry: Any = None, /, **labels: Any) -> Explanation:
        """Why an entry of the newest slice was flagged, or why not, in words and numbers.

        Args:
            entry: Its labels by mode, `{"src": "A", "dst": "B"}`, or one label or number for each mode, `(0, 3)`.
            **labels: The same by mode, `src="A", dst="B"`, in place of it.
        """
        view, newest = self._view("explain"), self._newest()
        position = view.names.position(labels if entry is None else entry)
        adds = Table(("component", "adds", "share"), component_rows(view.components, position))
        explained: Explanation = newest.explained(position, view.names, adds)
        return explained

    def _repr_html_(self) -> str:
        try:
            view = self._view("this")
        except ValueError:
            return notebook.box(repr(self))
        shares = dict(zip(view.predictors, view.moments[-1].weights, strict=False)) if view.moments else {}
        bar = notebook.weights(shares) if shares else ""
        return notebook.box(view.title, bar, notebook.lines(view.components.summary(view.names)))

    def _view(self, what: str) -> ModelView:
        """What is shown of the model; ValueError before the first slice."""
        raise NotImplementedError

    def _newest(self) -> Any:
        """The result of the newest slice."""
        raise NotImplementedError


def component_rows(components: Components, position: tuple[int, ...]) -> list[tuple[int, float, float]]:
    """What each component adds to an entry of the newest slice, on the scale of the model."""
    adds: Any = components.parts(position) if components.count else ()
    return [(number + 1, float(one), float(components.shares[number])) for number, one in enumerate(adds)]
