"""RobustCP: the friendly shell over the functional core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine import functional
from undertow.engine import selection as panel
from undertow.engine.functional import State
from undertow.engine.pipeline import Ahead
from undertow.engine.selection import Panel
from undertow.inputs.dense import as_slice, peek_shape
from undertow.inputs.packing import Piece
from undertow.inputs.sparse import as_entries, is_sparse
from undertow.results import Result
from undertow.serialization import models as saving

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FactorMatrices:
    """The living components, largest first: `slice ≈ Σ_r temporal[t, r] · modes[0][:, r] ∘ modes[1][:, r] ∘ …`

    That is the low-rank part of the slice, on the scale of the model, without the level.
    """

    modes: tuple[Floats, ...]
    """One (I_n, rank) matrix per mode."""
    temporal: Floats
    """(slices in the window, rank), oldest first."""


class RobustCP:
    """Robust low-rank factorization and completion of a stream of tensors, slice by slice.

    Every setting is optional; what each means stands at `undertow.Config`. What is not given of `level`, `robust`,
    `noise`, `scale`, `forgetting` and `max_rank` is chosen for the stream while it runs, and each result's `settings`
    say how. ``preset="fixed"`` chooses nothing, and costs less than half; ``preset="fast"`` chooses nothing either,
    and keeps half the window and sums of what has left it; ``preset="paper"`` is the model of Hawkins & Zhang as they
    published it.

    >>> import numpy as np, undertow as ut
    >>> model = ut.RobustCP(max_rank=3, window=5)
    >>> x = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 4.0])
    >>> x[0, 0] = np.nan
    >>> result = model.update(x)
    >>> result.low_rank.shape, bool(np.isfinite(result.low_rank[0, 0]))
    ((3, 4), True)
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        max_rank: int | None = None,
        window: int | None = None,
        forgetting: float | None = None,
        memory: str | None = None,
        level: bool | None = None,
        robust: bool | None = None,
        scale: str | None = None,
        outliers: str | None = None,
        noise: str | None = None,
        tau: str | None = None,
        outlier_rate: float | None = None,
        outlier_rate_strength: float | None = None,
        outlier_variance: float | None = None,
        precision_prior: float | None = None,
        start: str | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
        dtype: str | None = None,
        seed: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in _SETTINGS}
        config = make_config(preset, **given)
        self._params = _plain({"preset": preset, **given}, config)
        self._ahead: Ahead | None = None
        self._layout: tuple[tuple[int, ...], bool] | None = None

    @property
    def _panel(self) -> Panel | None:
        """All models of the stream, after the last slice; None before the first."""
        return None if self._ahead is None else self._ahead.panel()

    @_panel.setter
    def _panel(self, panel: Panel | None) -> None:
        """Begin, or go on, from a panel."""
        self._ahead = self._layout = None
        if panel is not None:
            self._ahead = Ahead(panel)
            self._layout = panel.shape, panel.members[0].state.entries is not None

    def __copy__(self) -> RobustCP:
        """A model of its own, which goes on by itself from here."""
        other = RobustCP.__new__(RobustCP)
        other._params = dict(self._params)
        other._panel = None if self._panel is None else panel.copied(self._panel)
        return other

    @property
    def config(self) -> Config:
        """All settings in force now, those chosen for the stream included."""
        return make_config(**self._params) if self._panel is None else self._panel.speaker.state.config

    @property
    def state(self) -> State | None:
        """A copy of the functional core's state, of the model that speaks; None before the first slice."""
        return None if self._panel is None else functional.copied(self._panel.speaker.state)

    def update(self, x: Any, mask: Any = None) -> Result:
        """Learn from the next slice and say what it holds.

        Args:
            x: the slice: array with NaN where missing, `numpy.ma.MaskedArray` or `xarray.DataArray`, one mode or more;
                or its observed entries only, as `undertow.Entries` or a matrix or array of scipy.sparse.
            mask: True where observed, if NaN does not say it.
        """
        if self._ahead is None or self._layout is None:
            begun, piece = self._begun(x, mask)
            ahead = Ahead(begun)
            result = ahead.learn(piece)
            self._panel = ahead.panel()
            return result
        return self._ahead.learn(functional.as_piece(*self._layout, x, mask))

    def _begun(self, x: Any, mask: Any) -> tuple[Panel, Piece]:
        """A panel for streams that start with this slice, and the slice. The first slice decides what is kept."""
        preset, given = self._params["preset"], {name: self._params[name] for name in _SETTINGS}
        listed = as_entries(x, mask) if is_sparse(x) else None
        if listed is not None and functional.prefers_entries(self.config.window, listed):
            configs = panel.for_entries(preset, given, listed.shape)
            return panel.init(configs, listed.shape, listed.values.size), listed
        shape = peek_shape(x)
        if shape and min(shape) > 0:  # before a copy of x is made
            functional.check_memory(panel.candidates(preset, given, shape), shape)
        piece = as_slice(x, mask) if listed is None else listed.to_slice()
        return panel.init(panel.candidates(preset, given, piece.shape), piece.shape), piece

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Learn from several slices (T, *shape), oldest first; what was learned before is kept.

        All or nothing: if one of them is refused, the model is as before.
        """
        return self._learn_all(X, self._panel)

    def fit(self, X: Any, y: None = None) -> Self:
        """Start anew and learn from several slices (T, *shape)."""
        return self._learn_all(X, None)

    def _learn_all(self, X: Any, start: Panel | None) -> Self:
        before = self._panel
        try:
            slices = _slices_of(X)
            self._panel = None if start is None else panel.copied(start)  # learning uses it up
            for x in slices:
                self.update(x)
            _ = self._panel  # wait for the last
        except BaseException:
            self._panel = before
            raise
        return self

    def transform(self, X: Any) -> Floats:
        """The low rank of several slices (T, *shape) by the present factors; nothing is learned from them."""
        state = self._learned("transform")
        if state.entries is not None:
            raise ValueError(
                "transform gives whole slices, and only observed entries are kept here: use at(...) instead."
            )
        return np.stack([functional.look(state, x).low_rank for x in _slices_of(X)])

    def smoothed(self, lag: int = 0) -> Result:
        """The slice `lag` steps before the newest, as seen now: later slices have corrected it."""
        return functional.smoothed(self._learned("smoothed"), lag)

    def at(self, *indices: Any) -> Result:
        """Some entries of the newest slice, observed or not: one array of indices per mode. Nothing else is computed
        where only observed entries are kept; outliers are 0 there, since it is not looked up what was observed."""
        return functional.at(self._learned("at"), indices)

    def reconstruct(self, lag: int = 0) -> Floats:
        """The low rank of the slice `lag` steps before the newest."""
        return self.smoothed(lag).low_rank

    @property
    def factors(self) -> FactorMatrices:
        """The living components in units of the data (the unit is in the temporal rows)."""
        state = self._learned("factors")
        factors, window = state.core.factors, state.core.window
        modes = [np.asarray(mean, np.float64) for mean in factors.means]
        length = min(state.steps, state.config.window)
        order = (int(window.newest) - np.arange(length)[::-1]) % state.config.window
        temporal = np.asarray(factors.row_means, np.float64)[order] * state.unit
        sizes = np.prod([np.linalg.norm(matrix, axis=0) for matrix in [*modes, temporal]], axis=0)
        living = np.flatnonzero(functional.living(state))
        living = living[np.argsort(-sizes[living], kind="stable")]
        return FactorMatrices(tuple(matrix[:, living] for matrix in modes), temporal[:, living])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, atomically; `undertow.load` goes on from it with bit-identical results."""
        self._learned("save")
        assert self._panel is not None
        saving.save(path, self._params, self._panel)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings as given; None where the preset decides."""
        return dict(self._params)

    def set_params(self, **params: Any) -> Self:
        """Change settings. Only before the first slice: a state belongs to its settings."""
        if self._panel is not None:
            raise ValueError("settings cannot change once slices have been seen: make a new RobustCP with them.")
        changed = {**self._params, **params}
        self._params = _plain(changed, make_config(**changed))
        return self

    def __repr__(self) -> str:
        given = {name: value for name, value in self._params.items() if value is not None}
        if given["preset"] == "default":
            del given["preset"]
        call = f"RobustCP({', '.join(f'{name}={value!r}' for name, value in given.items())})"
        if self._panel is None:
            return call
        shape = "×".join(map(str, self._panel.shape))
        living = int(functional.living(self._panel.speaker.state).sum())
        return f"{call}  # {self._panel.steps} slices of {shape}, {living} components"

    def _learned(self, what: str) -> State:
        if self._panel is None:
            raise ValueError(f"{what} needs at least one slice: call update(x) first.")
        return self._panel.speaker.state


_SETTINGS = tuple(field.name for field in fields(Config))


def _plain(params: dict[str, Any], config: Config) -> dict[str, Any]:
    """The settings as given, as plain Python numbers (the configuration has converted them)."""
    return {name: value if value is None else getattr(config, name, value) for name, value in params.items()}


def load(path: str | os.PathLike[str]) -> RobustCP:
    """The model that `RobustCP.save` wrote; it goes on exactly where it stopped."""
    params, panel = saving.load(path)
    model = RobustCP.__new__(RobustCP)
    model._params = {name: params.get(name) for name in ("preset", *_SETTINGS)}
    model._panel = panel
    return model


def _slices_of(X: Any) -> Iterable[Any]:
    """The slices of (T, *shape), refused before the first is learned if it cannot be a stack of slices."""
    if is_sparse(X):
        raise ValueError("X must be a list of sparse slices, got a single one: use update(x), or [x].")
    if len(peek_shape(X)) < 2:
        raise ValueError(
            f"X must be a stack of slices, (T, I_1, …), got shape {peek_shape(X)}: use update(x) for a single slice."
        )
    return X if isinstance(X, Sequence) else (X[index] for index in range(len(X)))
