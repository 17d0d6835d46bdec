"""RobustCP: one stream, learned slice by slice; a thin shell over `undertow.engine`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine import functional, learner
from undertow.engine.capacity import prefers_entries
from undertow.engine.exclusive import check_process, exclusive
from undertow.engine.learner import Learner
from undertow.engine.memory import check_memory
from undertow.engine.pipeline import Pipeline
from undertow.engine.stacked import StackedModel
from undertow.engine.state import SPARSE_SETTINGS, State
from undertow.inputs.dense import as_slice, peek_shape
from undertow.inputs.labels.names import labels_in, with_labels
from undertow.inputs.sparse import AnySlice, as_any_slice, as_entries, is_sparse
from undertow.results import Result
from undertow.serialization import container, models
from undertow.tracker import rearranging
from undertow.tracker.estimator import Tracker, from_checkpoint
from undertow.tracker.reading import components
from undertow.view.model import ModelView
from undertow.view.names import Names
from undertow.view.viewed import Viewed

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FactorMatrices:
    """The active components, largest first: `slice ≈ Σ_r temporal[t, r] · modes[0][:, r] ∘ modes[1][:, r] ∘ …`

    That is the low-rank part of the slice, on the scale of the model, without the level.

    Attributes:
        modes: One (I_n, rank) matrix per mode.
        temporal: (slices in the window, rank), oldest first.
    """

    modes: tuple[Floats, ...]
    temporal: Floats


class RobustCP(Viewed, StackedModel):
    """Robust low-rank factorization and completion of a stream of tensors, slice by slice: one Bayesian CP model.

    Every setting is optional; `undertow.Config` says what each means. What is not given is as the preset has it, and
    stays so: nothing is selected while the stream runs.

    Threads may share a model: one at a time learns or reads, the others wait. A process that was forked after the first
    slice gets an error; use "spawn".

    Args:
        preset: "default"; "fast", which keeps half the window and exponentially discounted statistics of what has left
            it; or "paper", the model of Hawkins & Zhang, with six iterations for every slice, where their code stops
            (``max_iterations=100`` lets it converge).

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of its range, or two exclude each other.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> model = ut.RobustCP(max_rank=3, window=4)
        >>> x = np.outer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 2.0, 4.0, 3.0])
        >>> x[0, 0] = np.nan
        >>> result = model.update(x)
        >>> result.mean.shape, bool(np.isfinite(result.mean[0, 0]))
        ((6, 5), True)
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
        self._pipeline: Pipeline | None = None
        self._layout: tuple[tuple[int, ...], bool] | None = None

    _latest: Result | None = None
    """Of the newest slice, to be explained; None in a model that was loaded or copied."""

    @property
    def _learner(self) -> Learner | None:
        """The model after the last slice; None before the first."""
        return None if self._pipeline is None else self._pipeline.learner()

    @_learner.setter
    def _learner(self, now: Learner | None) -> None:
        self._pipeline = self._layout = self._latest = None
        if now is not None:
            self._pipeline, self._layout = Pipeline(now), now.layout

    @exclusive
    def __copy__(self) -> RobustCP:
        """A model that goes on from here independently."""
        other = RobustCP.__new__(RobustCP)
        other._params = dict(self._params)
        other._learner = self._copied()
        other._labels = self._labels
        return other

    @property
    @exclusive
    def config(self) -> Config:
        """All settings. `max_rank`, where it is not given, is known from the first slice on."""
        return make_config(**self._params) if self._learner is None else self._learner.state.config

    @property
    @exclusive
    def state(self) -> State | None:
        """A copy of the state, for `undertow.step`; None before the first slice."""
        return None if self._learner is None else self._learner.state.copy()

    @exclusive
    def update(self, x: Any, mask: Any = None) -> Result:
        """Learn from the next slice.

        Args:
            x: The slice: array with NaN where missing, `numpy.ma.MaskedArray`, one mode or more; `xarray.DataArray`,
                frame or series of pandas or polars, put in the order of the stream by names and labels; or its
                observed entries only, as `undertow.Entries` or a matrix or array of scipy.sparse.
            mask: True where observed, if NaN does not say it.

        Returns:
            The slice as the model sees it. Numerical problems are its `status`.

        Raises:
            TypeError: `x` or `mask` do not hold real numbers.
            ValueError: `x` has another shape or other labels than the slices before it, or infinite values, or is too
                large.
        """
        check_process()
        found = self._taken(x, mask, None if self._layout is None else self._layout[0])
        if self._pipeline is None or self._layout is None:
            start, validated = self._start(found.x, found.mask)
            pipeline = Pipeline(start)
            result = pipeline.update(validated)
            self._learner = pipeline.learner()
        else:
            result = self._pipeline.update(as_any_slice(*self._layout, found.x, found.mask))
        self._latest = result.along(self._keep(found), self._labels)
        return self._latest

    def _start(self, x: Any, mask: Any) -> tuple[Learner, AnySlice]:
        """A model for a stream that starts with this slice, and the slice. It decides which entries are kept."""
        config = self.config
        listed = as_entries(x, mask) if is_sparse(x) else None
        if listed is not None and prefers_entries(config.window, listed):
            given = {name: value for name, value in self._params.items() if value is not None}
            if self._params["preset"] == "default":
                config = make_config(**{**SPARSE_SETTINGS, **given})
            return learner.start(config, listed.shape, listed.values.size), listed
        shape = peek_shape(x)
        if shape and min(shape) > 0:  # before a copy of x is made
            check_memory(config, shape)
        validated = as_slice(x, mask) if listed is None else listed.to_slice()
        return learner.start(config, validated.shape), validated

    def _learned_so_far(self) -> Learner | None:
        return self._learner

    def _copied(self) -> Learner | None:
        return None if self._learner is None else self._learner.copy()

    def _go_on_from(self, learned: Learner | None) -> None:
        self._learner = learned

    @exclusive
    def transform(self, X: Any) -> Any:
        """Infer several slices with the factors fixed; nothing is learned from them.

        Args:
            X: As for `fit`.

        Returns:
            Their `mean`, as `X`: (T, *shape), `xarray.DataArray`, or frame.
        """
        state = self._learned("transform")
        if state.entry_capacity is not None:
            raise ValueError(
                "transform gives whole slices, and only observed entries are kept here: use at(...) instead."
            )
        return self._of_each(X, state.shape, lambda x: functional.infer(state, x).plain("mean"))

    @exclusive
    def smoothed(self, lag: int = 0) -> Result:
        """What is known now about an earlier slice: later slices have corrected it.

        With `robust=False` outliers are known of the newest slice only, as `update` reported them.

        Args:
            lag: Steps before the newest slice, below the number of slices in the window.
        """
        return functional.smoothed(self._learned("smoothed"), lag).along(self._way)

    @exclusive
    def at(self, *indices: Any) -> Result:
        """What is known about some entries of the newest slice, observed or not.

        Where only observed entries are kept, nothing else is computed, and outliers are 0.

        Args:
            *indices: One array of integers per mode; they broadcast.
        """
        return functional.at(self._learned("at"), indices)

    def reconstruct(self, lag: int = 0) -> Floats:
        """The `mean` of the slice `lag` steps before the newest."""
        return self.smoothed(lag).mean

    @property
    @exclusive
    def factors(self) -> FactorMatrices:
        """The active components in units of the data (the unit is in the temporal rows)."""
        state = self._learned("factors")
        factors, window = state.core.factors, state.core.window
        modes = [np.asarray(mean, np.float64) for mean in factors.means]
        length = min(state.steps, state.config.window)
        order = (int(window.newest) - np.arange(length)[::-1]) % state.config.window
        temporal = np.asarray(factors.row_means, np.float64)[order] * state.unit
        sizes = np.prod([np.linalg.norm(matrix, axis=0) for matrix in [*modes, temporal]], axis=0)
        active = np.flatnonzero(state.active)
        active = active[np.argsort(-sizes[active], kind="stable")]
        return FactorMatrices(tuple(matrix[:, active] for matrix in modes), temporal[:, active])

    @exclusive
    def extend(self, shape: Sequence[int]) -> None:
        """Further rows at the ends of modes: nobody has observed them, and what is said of the others stays.

        Args:
            shape: Of slices from now on; as many rows as before in every mode, or more.

        Raises:
            ValueError: Some mode would have less rows, or it has labels, or only observed entries are kept.
        """
        if self._layout is None or tuple(shape) == self._layout[0]:
            return
        places = rearranging.extended(self._layout[0], shape)
        if self._labels is not None:
            self._labels.check(tuple(map(len, places)))
        self._rearrange(places)

    def _rearrange(self, places: rearranging.Places) -> None:
        """Other rows."""
        assert self._layout is not None
        if self._layout[1]:
            raise ValueError("a model that keeps observed entries only cannot get other rows: begin with all of them.")
        now = self._learner
        assert now is not None
        self._learner = Learner(rearranging.model(now.state, places), now.history)

    @exclusive
    def forget(self, rows: Sequence[Sequence[int]]) -> None:
        """Forget what is known of some rows, as if they had never been observed: others stand there from now on.

        Args:
            rows: For every mode, which ones.

        Raises:
            ValueError: No slice has been seen yet, there is no such row, or only observed entries are kept.
        """
        self._rearrange(rearranging.emptied(self._learned("forget").shape, rows))

    @exclusive
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, atomically; `undertow.load` goes on from it with bit-identical results.

        Args:
            path: The file.

        Raises:
            CheckpointError: It cannot be written.
            ValueError: No slice has been seen yet.
        """
        container.write(path, *self._packed("save"))

    @exclusive
    def to_bytes(self) -> bytes:
        """The model as bytes, the same that `save` writes; `undertow.from_bytes` goes on from them.

        Raises:
            ValueError: No slice has been seen yet.
        """
        return container.to_bytes(*self._packed("to_bytes"))

    def _packed(self, what: str) -> models.Checkpoint:
        self._learned(what)
        assert self._learner is not None
        checkpoint: models.Checkpoint = with_labels(models.packed(self._params, self._learner), self._labels)
        return checkpoint

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings as given; None where the preset decides."""
        return dict(self._params)

    @exclusive
    def set_params(self, **params: Any) -> Self:
        """Change settings before the first slice: a state belongs to its settings.

        Args:
            **params: `preset`, or fields of `undertow.Config`.

        Returns:
            The model itself.
        """
        if self._learner is not None:
            raise ValueError("settings cannot change once slices have been seen: make a new RobustCP with them.")
        changed = {**self._params, **params}
        self._params = _plain(changed, make_config(**changed))
        return self

    @exclusive
    def __repr__(self) -> str:
        given = {name: value for name, value in self._params.items() if value is not None}
        if given["preset"] == "default":
            del given["preset"]
        call = f"RobustCP({', '.join(f'{name}={value!r}' for name, value in given.items())})"
        now = self._learner
        if now is None:
            return call
        shape, rank = "×".join(map(str, now.state.shape)), int(now.state.active.sum())
        return f"{call}  # {now.history.counts.seen} slices of {shape}, {rank} components"

    def _slice_shape(self) -> tuple[int, ...] | None:
        return None if self._layout is None else self._layout[0]

    @exclusive
    def _view(self, what: str) -> ModelView:
        state = self._learned(what)
        names = Names.of(state.shape, self._labels)
        return ModelView(title=repr(self).replace("  # ", ": "), names=names, components=components(state))

    def _newest(self) -> Result:
        return self._latest or self.smoothed(0)

    def _learned(self, what: str) -> State:
        now = self._learner
        if now is None:
            raise ValueError(f"{what} needs at least one slice: call update(x) first.")
        return now.state


_SETTINGS = tuple(field.name for field in fields(Config))


def _plain(params: dict[str, Any], config: Config) -> dict[str, Any]:
    """The settings as given, as plain Python numbers (the configuration has converted them)."""
    return {name: value if value is None else getattr(config, name, value) for name, value in params.items()}


def load(path: str | os.PathLike[str]) -> RobustCP | Tracker:
    """The model or the tracker that `save` wrote; it goes on exactly where it stopped.

    Args:
        path: The file.

    Returns:
        The model.

    Raises:
        CheckpointError: The file is damaged, or does not hold a model of this version.

    Examples:
        >>> import tempfile, numpy as np, undertow as ut
        >>> model = ut.RobustCP(max_rank=3, window=4)
        >>> _ = model.update(np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.ckpt")
        ...     same = ut.load(f"{folder}/model.ckpt")
        >>> int(same.state.steps)
        1
    """
    check_process()
    return _unpacked(container.read(path), os.fspath(path))


def from_bytes(data: bytes) -> RobustCP | Tracker:
    """The model or the tracker that `to_bytes` gave; it goes on exactly where it stopped.

    Args:
        data: The bytes, or what is in a file that `RobustCP.save` wrote.

    Returns:
        The model.

    Raises:
        CheckpointError: They are damaged, or do not hold a model of this version.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> model = ut.RobustCP(max_rank=3, window=4)
        >>> result = model.update(np.ones((6, 5)))
        >>> ut.from_bytes(model.to_bytes())
        RobustCP(max_rank=3, window=4)  # 1 slices of 6×5, 1 components
    """
    check_process()
    content, name = container.given_bytes(data)
    return _unpacked(container.from_bytes(content, name), name)


def _unpacked(checkpoint: models.Checkpoint, name: str) -> RobustCP | Tracker:
    if checkpoint[0].get("kind") == "Tracker":
        return from_checkpoint(checkpoint, name)
    params, loaded = models.unpacked(checkpoint, name)
    model = RobustCP.__new__(RobustCP)
    model._params = {name: params.get(name) for name in ("preset", *_SETTINGS)}
    model._learner = loaded
    model._labels = labels_in(checkpoint, name)
    return model
