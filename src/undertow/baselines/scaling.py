"""Any rival made independent of the unit of the data: scale once, undo in the results.

Published settings are absolute where `needs_unit_scale` says so: a ridge or a step of 0.1 suits entries of about 1. The
scale is the mean |entry| observed in the first slice that is not all zero, and stays. Until then the scale is 1,
which changes nothing: zeros are zeros in every unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from undertow.baselines.door import check_shape, observe
from undertow.baselines.registry import Method
from undertow.baselines.result import Array, BaselineResult


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """The state of the rival, and the unit in which it sees the data.

    inner  the rival's own state
    scale  mean |entry| of the first slice that is not all zero; 0 before it, ()
    """

    shape: tuple[int, ...] = field(metadata={"static": True})
    inner: Any
    scale: Array


def unit_scaled(method: Method) -> Method:
    """The same rival, fed with entries of about 1 whatever the unit of the data."""

    def init(config: Any, shape: tuple[int, ...]) -> State:
        return State(check_shape(shape), method.init(config, shape), np.zeros(()))

    def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
        slice_values, observed = observe(values, mask, state.shape)
        scale = state.scale
        if scale == 0 and observed.any():
            scale = np.asarray(np.abs(slice_values[observed]).mean())
        unit = float(scale) or 1.0
        inner, result = method.step(state.inner, slice_values / unit, observed)
        return State(state.shape, inner, scale), _in_unit(result, unit)

    return replace(method, init=init, step=step, needs_unit_scale=False)


def _in_unit(result: BaselineResult, unit: float) -> BaselineResult:
    def scaled(part: Array | None) -> Array | None:
        return None if part is None else part * unit

    return replace(
        result,
        low_rank=result.low_rank * unit,
        prediction=scaled(result.prediction),
        outliers=scaled(result.outliers),
        outlier_score=scaled(result.outlier_score),
    )
