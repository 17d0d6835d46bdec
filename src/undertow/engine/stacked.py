"""Learning from several slices in one call, as scikit-learn has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from undertow.engine.exclusive import exclusive
from undertow.engine.labelled import LabelledModel
from undertow.inputs.labels.stacks import count_of, restacked, slices_of
from undertow.results import Result


class StackedModel(LabelledModel):
    """Gives a model that learns slice by slice `partial_fit`, `fit` and `fit_transform`."""

    def update(self, x: Any, mask: Any = None) -> Result:
        """Learn from the next slice."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Learn from several slices; what was learned before is kept. If one is refused, the model is as before.

        Args:
            X: (T, *shape), oldest first, or a list of slices.
            y: Ignored, as scikit-learn has it.

        Returns:
            The model itself.
        """
        return self._update_all(X, anew=False)

    def fit(self, X: Any, y: None = None) -> Self:
        """Start anew and learn from several slices, as `partial_fit` does."""
        return self._update_all(X, anew=True)

    @exclusive
    def fit_transform(self, X: Any, y: None = None, *, progress: Callable[[int, int], None] | None = None) -> Any:
        """Start anew, learn from several slices, and give the `mean` of each as it was when it came.

        `undertow.clean` gives error bars and outliers too, and reads what does not fit into memory.

        Args:
            X: As for `fit`.
            y: Ignored, as scikit-learn has it.
            progress: Called after every slice with slices done and slices in all; `undertow.clean` shows a bar.

        Returns:
            As `X`: (T, *shape), `xarray.DataArray`, or frame.
        """
        means: list[Any] = []

        def keep(result: Result) -> None:
            means.append(result.mean)
            if progress is not None:
                progress(len(means), count_of(X))

        self._update_all(X, anew=True, keep=keep)
        return restacked(X, means)

    def _of_each(self, X: Any, shape: tuple[int, ...], mean: Callable[[Any], Any]) -> Any:
        """What `mean` gives for each slice of a stack, with the labels of the stack."""
        found = []
        for x in slices_of(X):
            taken = self._taken(x, None, shape)
            made = mean(taken.x)
            found.append(made if taken.way is None else taken.way.back(made))
        return restacked(X, found)

    @exclusive
    def _update_all(self, X: Any, *, anew: bool, keep: Callable[[Result], None] | None = None) -> Self:
        before, labels = self._learned_so_far(), self._labels
        try:
            slices = slices_of(X)
            self._go_on_from(None if anew else self._copied())  # updates donate what they go on from
            self._labels = None if anew and before is not None else labels
            for x in slices:
                result = self.update(x)
                if keep is not None:
                    keep(result)
            self._learned_so_far()  # wait for the last
        except BaseException:
            self._go_on_from(before)
            self._labels = labels
            raise
        return self

    def _learned_so_far(self) -> Any:
        """All that the next slice needs; None before the first."""
        raise NotImplementedError

    def _copied(self) -> Any:
        """A copy of it."""
        raise NotImplementedError

    def _go_on_from(self, learned: Any) -> None:
        """The next slice follows what was learned."""
        raise NotImplementedError
