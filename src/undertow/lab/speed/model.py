"""Undertow as a subject: one model with its settings given, the same on sparse slices, and the default model."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from undertow.config import make_config
from undertow.engine import functional
from undertow.engine.state import precision
from undertow.inputs.scaling import Scaling
from undertow.inputs.transfer import DeviceSlice
from undertow.lab.speed.formula import sparse_flops, sweep_flops
from undertow.lab.speed.slices import Floats, Slices
from undertow.lab.speed.subject import Subject
from undertow.model.step import step as model_step
from undertow.runs.default_model import default_model

if TYPE_CHECKING:
    from undertow.lab.speed.workload import Workload

_NEVER = 1e-12  # a tolerance that nothing falls below in single precision


class OneModel(Subject):
    """`functional.step` with settings given: values from and results to the host are part of the time."""

    def __init__(self, workload: Workload, slices: Slices) -> None:
        config = make_config(max_rank=workload.max_rank, window=workload.window, **workload.settings)
        self.values = slices.values
        self.state = functional.init(config, workload.shape)
        self.last: Floats | None = None

    def feed(self, t: int) -> int:
        """One step; the results have arrived when it returns."""
        self.state, result = functional.step(self.state, self.values[t])
        self.last = result.mean
        return int(result.iterations)

    def low_rank(self) -> Floats | None:
        """The low rank, with the level where there is one."""
        return self.last

    def flops(self, iterations: int) -> float:
        """The matrix products of the sweeps."""
        config = self.state.config
        return iterations * sweep_flops(self.state.shape, config.window, config.rank_limit(self.state.shape))

    def memory(self) -> int | None:
        """Arguments, results and temporary arrays of the compiled step."""
        with precision(self.state.config):
            planned = self._lowered().compile().memory_analysis()
        if planned is None:  # not every device knows
            return None
        parts = planned.argument_size_in_bytes + planned.output_size_in_bytes + planned.temp_size_in_bytes
        return int(parts - planned.alias_size_in_bytes)

    def _lowered(self) -> Any:
        state = self.state
        values, mask = np.zeros(state.shape, state.config.dtype), np.ones(state.shape, dtype=bool)
        return model_step.lower(state.core, values, mask, state.config.settings())

    def pinned(self, sweeps: int) -> Self:
        """The same program: both settings are numbers, so nothing is compiled anew."""
        other = self.snapshot()
        config = replace(self.state.config, max_iterations=sweeps, tolerance=_NEVER)
        other.state = replace(self.state, config=config)
        return other


class SparseModel(OneModel):
    """`functional.step` on sparse slices, of which only observed entries are kept."""

    def __init__(self, workload: Workload, slices: Slices) -> None:
        config = make_config(max_rank=workload.max_rank, window=workload.window, noise="shared", **workload.settings)
        self.values = slices.values
        self.state = functional.init(config, workload.shape, max(one.values.size for one in slices.values))
        self.last: Floats | None = None

    def flops(self, iterations: int) -> float:
        """Of the sums over entries."""
        config, entries = self.state.config, self.values[0].values.size
        return iterations * sparse_flops(self.state.shape, entries, config.window, config.rank_limit(self.state.shape))

    def _lowered(self) -> Any:
        state = self.state
        given, scaling = DeviceSlice(self.values[0], state.entry_capacity), Scaling.of(state.config, state.unit)
        return model_step.lower(
            state.core, given.values(scaling), given.mask(), state.settings, None, given.entry_index()
        )


class Default(Subject):
    """The default model."""

    def __init__(self, workload: Workload, slices: Slices) -> None:
        self.values = slices.values
        self.model = default_model()
        self.last: Floats | None = None

    def feed(self, t: int) -> int:
        """One update."""
        result = self.model.update(self.values[t])
        self.last = result.mean
        return int(result.iterations)

    def low_rank(self) -> Floats | None:
        """The low rank, with the level where there is one."""
        return self.last

    def snapshot(self) -> Self:
        """With a copy of the estimator, which goes on independently."""
        other = super().snapshot()
        other.model = copy.copy(self.model)
        return other
