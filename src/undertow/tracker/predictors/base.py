"""What every predictor of the tracker is: three pure functions on arrays of fixed shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import huber


@register_dataclass
@dataclass(frozen=True)
class Prediction:
    """What a predictor says about every entry of a slice (n,).

    Attributes:
        mean: Of an observed entry: from the past and from all other entries of the slice. Of any other entry: from the
            past and from all that was observed.
        variance: Of the entry without noise.
        noise: Variance of the noise.
    """

    mean: Array
    variance: Array
    noise: Array


@register_dataclass
@dataclass(frozen=True)
class Given:
    """A slice on the scale of the model, flattened (n,).

    Attributes:
        values: 0 where nothing was observed.
        weights: Of every observation in [0, 1]; 0 where there is none, or where it is withheld.
        level: What the local level predicts, for predictors that work on deviations from it.
        noise: Weights with which observations tell of the noise; None where they are the same.
        bound: Standard deviations beyond which an error tells no more of it: it may be an outlier not noticed.
        usual: Squared errors that are usual whatever the variance (n,): up to these they count in full.
    """

    values: Array
    weights: Array
    level: Array
    noise: Array | None = None
    bound: Array | float = huber.LOOSE
    usual: Array | float = 0.0


class Predictor(Protocol):
    """One way of knowing an entry from its past and from the rest of its slice, or several of a kind (M)."""

    names: tuple[str, ...]
    """In `Result.weights`: one, or one for each of M."""

    def init(self, entries: int) -> Any:
        """The state that has seen nothing."""

    def predict(self, state: Any, given: Given) -> Prediction:
        """Every observed entry as if it had not been observed, (n,) or (M, n); nothing is learned."""

    def learn(self, state: Any, given: Given) -> tuple[Any, Array]:
        """The state after the slice, and the mean of every entry given all of the slice, (n,) or (M, n)."""
