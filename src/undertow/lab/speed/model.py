"""Undertow as a subject: one model with its settings given, and the estimator with nothing set."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from undertow.config import make_config
from undertow.engine import functional
from undertow.estimator import RobustCP
from undertow.lab.speed.formula import sweep_flops
from undertow.lab.speed.subject import Floats, Subject
from undertow.model.step import advance

if TYPE_CHECKING:
    from undertow.lab.speed.case import Case
    from undertow.lab.speed.stream import Stream

_NEVER = 1e-12  # a tolerance that nothing falls below in single precision


class OneModel(Subject):
    """`functional.step` with settings given: values from and results to the host are part of the time."""

    def __init__(self, case: Case, stream: Stream) -> None:
        config = make_config("fixed", max_rank=case.max_rank, window=case.window, **case.settings)
        self.values = stream.values
        self.state = functional.init(config, case.shape)
        self.last: Floats | None = None

    @classmethod
    def of(cls, case: Case, stream: Stream) -> Subject:
        """As a case's `make` wants it."""
        return cls(case, stream)

    def feed(self, t: int) -> int:
        """One step; the results have arrived when it returns."""
        self.state, result = functional.step(self.state, self.values[t])
        self.last = result.low_rank
        return int(result.iterations)

    def low_rank(self) -> Floats | None:
        """The low rank, with the level where there is one."""
        return self.last

    def flops(self, iterations: int) -> float:
        """The matrix products of the sweeps."""
        config = self.state.config
        return iterations * sweep_flops(self.state.shape, config.window, config.max_rank)

    def memory(self) -> int | None:
        """Arguments, results and temporary arrays of the compiled step."""
        state = self.state
        values, mask = np.zeros(state.shape, state.config.dtype), np.ones(state.shape, dtype=bool)
        with functional.scope(state.config):
            planned = advance.lower(state.core, values, mask, state.config.settings()).compile().memory_analysis()
        if planned is None:  # not every device tells
            return None
        parts = planned.argument_size_in_bytes + planned.output_size_in_bytes + planned.temp_size_in_bytes
        return int(parts - planned.alias_size_in_bytes)

    def pinned(self, sweeps: int) -> Self:
        """The same program: both settings are numbers, so nothing is compiled anew."""
        other = self.snapshot()
        config = replace(self.state.config, max_iterations=sweeps, tolerance=_NEVER)
        other.state = replace(self.state, config=config)
        return other


class Automatic(Subject):
    """`RobustCP` with nothing set: several models side by side, and the choice between them."""

    def __init__(self, case: Case, stream: Stream) -> None:
        self.values = stream.values
        self.model = RobustCP(**case.settings)
        self.last: Floats | None = None

    @classmethod
    def of(cls, case: Case, stream: Stream) -> Subject:
        """As a case's `make` wants it."""
        return cls(case, stream)

    def feed(self, t: int) -> int:
        """One update; the sweeps are those of the model that speaks."""
        result = self.model.update(self.values[t])
        self.last = result.low_rank
        return int(result.iterations)

    def low_rank(self) -> Floats | None:
        """Of the model that speaks."""
        return self.last

    def snapshot(self) -> Self:
        """With a copy of the estimator, which goes on by itself."""
        other = super().snapshot()
        other.model = copy.copy(self.model)
        return other
