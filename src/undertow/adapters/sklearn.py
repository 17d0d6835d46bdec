"""scikit-learn: rows of X are slices in the order of time; completion as a transformer, outliers as a detector."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow.adapters.models import new_model, seen

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"this needs {error.name}: pip install 'undertow[sklearn]'", name=error.name) from None

EXPECTED_FAILED_CHECKS = dict.fromkeys(
    ("check_outliers_fit_predict", "check_outliers_train"),
    "some rows of three clean clouds would have to be outliers, and for a stream none is",
)
"""For `check_estimator(StreamCleaner(), expected_failed_checks=EXPECTED_FAILED_CHECKS)` of scikit-learn."""


class StreamCleaner(OneToOneFeatureMixin, TransformerMixin, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Completes and denoises rows, and finds those in which something is wrong.

    `fit` learns rows in their order. `transform`, `score_samples` and `predict` then take each row as if it came next,
    independently of the others, and learn nothing; `partial_fit` goes on learning.

    Args:
        model: None for `undertow.Tracker()`; "cp" for `undertow.RobustCP()`; or a model, whose settings are used.
        threshold: A row is an outlier (−1) if one of its entries is one with at least this probability.
        shape: Of a slice, if rows are to be taken as tensors: its sizes multiply to the number of features.

    Attributes:
        model_: The model that has learned.
        offset_: `decision_function` is `score_samples` less this.
        n_features_in_: Number of features.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> from undertow.adapters.sklearn import StreamCleaner
        >>> X = np.outer(np.linspace(1, 2, 12), np.arange(1.0, 8.0))
        >>> X[3, 4] = np.nan
        >>> cleaner = StreamCleaner(ut.RobustCP(max_rank=3, window=4)).fit(X)
        >>> bool(np.isfinite(cleaner.transform(X)).all()), cleaner.predict(X[:3]).shape
        (True, (3,))
    """

    def __init__(self, model: Any = None, *, threshold: float = 0.5, shape: tuple[int, ...] | None = None) -> None:
        self.model = model
        self.threshold = threshold
        self.shape = shape

    def fit(self, X: Any, y: None = None) -> Self:
        """Start anew and learn rows.

        Args:
            X: Rows, oldest first (rows, features); NaN where missing.
            y: Ignored.

        Returns:
            Itself.
        """
        return self._learn(X, anew=True)

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Go on learning.

        Args:
            X: The next rows, oldest first (rows, features).
            y: Ignored.

        Returns:
            Itself.
        """
        return self._learn(X, anew=not hasattr(self, "model_"))

    def _learn(self, X: Any, *, anew: bool) -> Self:
        X = validate_data(self, X, reset=anew, dtype=(np.float64, np.float32), ensure_all_finite="allow-nan")
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold must be a probability above 0 and at most 1, got {self.threshold!r}.")
        slices = self._slices(X)
        if anew:
            self.model_ = new_model(self.model).fit(slices)
        else:
            self.model_.partial_fit(slices)
        self.offset_ = 1.0 - self.threshold
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """What every entry should be, missing ones included.

        Args:
            X: Rows, each as if it came next (rows, features).

        Returns:
            Means (rows, features).
        """
        return self._seen(X)[0]

    def outlier_probability(self, X: Any) -> NDArray[Any]:
        """How probably every entry is an outlier.

        Args:
            X: Rows, each as if it came next (rows, features).

        Returns:
            Probabilities (rows, features); 0 where an entry is missing.
        """
        return self._seen(X)[1]

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """How normal each row is.

        Args:
            X: Rows, each as if it came next (rows, features).

        Returns:
            1 less the largest probability that an entry of the row is an outlier (rows,).
        """
        scores: NDArray[np.float64] = 1.0 - self.outlier_probability(X).max(axis=1).astype(np.float64)
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How normal each row is, from 0 where a row is just no outlier.

        Args:
            X: Rows, each as if it came next (rows, features).

        Returns:
            `score_samples` less `offset_`: negative for outliers (rows,).
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Whether something is wrong in each row.

        Args:
            X: Rows, each as if it came next (rows, features).

        Returns:
            −1 for rows in which something is wrong, 1 for others (rows,).
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _seen(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32), ensure_all_finite="allow-nan")
        found = [seen(self.model_, x) for x in self._slices(X)]
        means, probabilities = (
            np.stack(arrays).reshape(X.shape).astype(X.dtype) for arrays in zip(*found, strict=True)
        )
        return means, probabilities

    def _slices(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.shape is None:
            return X
        if math.prod(self.shape) != X.shape[1]:
            raise ValueError(f"shape must have as many entries as X has features, {X.shape[1]}, got {self.shape}.")
        return X.reshape(len(X), *self.shape)

    def __sklearn_tags__(self) -> Any:
        """Missing entries are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
