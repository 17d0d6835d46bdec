"""The functional API: ``state = init(config, shape)``, ``state, result = step(state, values, mask)``.

A slice is validated (`undertow.inputs`), divided by the unit of the stream, sent to the device and learned by the
compiled step (`undertow.model.step`); what that reports becomes a `undertow.Result` in units of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import Array

from undertow.engine.capacity import missing_capacity, separable, with_entry_capacity, with_fitting_slots
from undertow.engine.exclusive import check_process
from undertow.engine.output import CrossPrediction, Output
from undertow.engine.state import State, blank, init, negative, precision
from undertow.inputs.packing import packed, unpacked, unpadded, unsorted_entry_index
from undertow.inputs.scaling import Scaling, first_unit
from undertow.inputs.sparse import AnySlice, as_any_slice, validated_indices
from undertow.inputs.split import half
from undertow.inputs.transfer import DeviceSlice
from undertow.model.phases import infer as model
from undertow.model.report import Report
from undertow.model.step import step as model_step
from undertow.model.types import Window, taken
from undertow.programs.program import program
from undertow.results import Result

__all__ = ["State", "at", "cross_predict", "infer", "init", "smoothed", "step", "step_donating"]


def step(state: State, values: Any, mask: Any = None) -> tuple[State, Result]:
    """Learn from one slice. A pure function: the state handed in is not changed.

    Every slice is learned. `undertow.RobustCP` also remembers the slices before: it leaves out exact repeats, and
    starts anew after a bad first slice.

    Args:
        state: From `init`, or from the last step.
        values: The slice: an array with NaN where missing, `numpy.ma.MaskedArray` or `xarray.DataArray`; or
            `undertow.Entries` or a matrix of scipy.sparse.
        mask: True where observed, if NaN does not say it.

    Returns:
        The state after the slice, and the slice as the model sees it. Numerical problems are its `status`.

    Raises:
        TypeError: `values` or `mask` do not hold real numbers.
        ValueError: The slice has another shape, or infinite values.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> state = ut.init(ut.make_config(max_rank=3, window=4), (6, 5))
        >>> state, result = ut.step(state, np.ones((6, 5)))
        >>> state.steps, result.mean.shape
        (1, (6, 5))
    """
    check_process()
    given = _on_device(state, values, mask)
    cross_predicted = None if state.config.robust else cross_predict(state, given)
    after, output = step_donating(state.copy(), given, cross_predicted)
    return after, Result(output)


def step_donating(
    state: State, given: DeviceSlice, cross_predicted: CrossPrediction | None = None
) -> tuple[State, Output]:
    """Learn from a slice without waiting for the device. The state is donated: its memory becomes the new one's.

    Args:
        state: Not to be used afterwards.
        given: The slice.
        cross_predicted: What a model that is not robust finds outliers by.

    Returns:
        The state after the slice, and what was computed for the slice.
    """
    state = with_fitting_slots(_with_unit(with_entry_capacity(state, given.capacity), given.host))
    scaling = Scaling.of(state.config, state.unit)
    if separable(state.config):
        state = replace(state, missing=(*state.missing, given.unused_entries(scaling))[-state.config.window :])
    with precision(state.config):
        core, report = model_step(
            state.core,
            given.values(scaling),
            given.mask(),
            state.settings,
            missing_capacity(state),
            given.entry_index(),
        )
    after = replace(state, steps=state.steps + 1, core=core, cross_predicted=cross_predicted)
    output = _output(after, report, given)
    if cross_predicted is not None:
        output = replace(output, cross_predicted=unpacked(cross_predicted, given.host))
    return after, output


def cross_predict(state: State, given: DeviceSlice) -> CrossPrediction | None:
    """Predict each half of a slice from the other half, before it is learned; None as long as nothing is learned."""
    if state.unit == 0 or state.steps == 0:
        return None
    state = with_entry_capacity(state, given.capacity)
    (first_half,) = packed(given.host, given.capacity, half(given.host, state.steps))
    with precision(state.config):
        values = given.values(Scaling.of(state.config, state.unit))
        predicted = model.cross_predict(
            state.core, values, given.mask(), first_half, state.settings, given.entry_index()
        )
        return CrossPrediction(*predicted)


def infer(state: State, values: Any, mask: Any = None) -> Result:
    """Infer a slice with the factors fixed: what `step` would report if nothing were learned from it."""
    given = _on_device(state, values, mask)
    state = _with_unit(with_entry_capacity(state, given.capacity), given.host)
    scaling = Scaling.of(state.config, state.unit)
    with precision(state.config):
        report = model.infer(state.core, given.values(scaling), given.mask(), state.settings, given.entry_index())
    return Result(_output(state, report, given))


def latest(state: State, given: DeviceSlice) -> Output:
    """A slice that is equal to the last one learned, as that one was seen: nothing is learned from it."""
    state = with_entry_capacity(state, given.capacity)
    with precision(state.config):
        report = model.latest(state.core, state.settings)
    return _output(state, report, given)


def smoothed(state: State, lag: int) -> Result:
    """What is known now about the slice `lag` steps before the newest; later slices have corrected it.

    Outliers of a model that is not robust are those that `step` reported, of the newest slice only: it has learned from
    all others.
    """
    length = min(state.steps, state.config.window)
    if isinstance(lag, bool) or not hasattr(lag, "__index__"):
        raise TypeError(f"lag must be an integer, got {lag!r}: 0 is the newest slice.")
    if not 0 <= lag < length:
        raise ValueError(f"lag must be at least 0 and below the {length} slices now in the window, got {lag!r}.")
    with precision(state.config):
        report = model.smooth(state.core, np.int32(lag), state.settings)
    indices, outliers_by = None, _outliers_by(state) if lag == 0 else {}
    if state.core.window.entry_index is not None:
        index, slot = state.core.window.entry_index, (int(state.core.window.newest) - lag) % state.config.window
        count = int(index.lengths[slot])
        indices = tuple(np.asarray(mode[slot, :count]) for mode in index.indices)
        report, outliers_by = unpadded(jax.device_get((report, outliers_by)), (count,))
    return Result(replace(_output(state, report), indices=indices, **outliers_by))


def at(state: State, indices: Sequence[Any]) -> Result:
    """What is known now about some entries of the newest slice, observed or not.

    Args:
        state: After the slice.
        indices: One array of integers per mode; they broadcast, and the arrays of the result have their shape.
    """
    wanted = validated_indices(tuple(np.broadcast_arrays(*indices)) if len(indices) else (), state.shape)
    outliers_by: dict[str, Any] = {}
    with precision(state.config):
        if state.entry_capacity is None:
            whole = jax.device_get((model.smooth(state.core, np.int32(0), state.settings), _outliers_by(state)))
            report, outliers_by = jax.tree.map(
                lambda array: array[wanted] if np.shape(array) == state.shape else array, whole
            )
        else:
            index = unsorted_entry_index(wanted, state.shape)
            report = unpadded(jax.device_get(model.at(state.core, state.settings, index)), wanted[0].shape)
    return Result(replace(_output(state, report), indices=wanted, **outliers_by))


@program()
def _newest(window: Window) -> tuple[Array, Array]:
    """Values and mask of the newest slice."""
    return taken(window.values, window.newest), taken(window.mask, window.newest)


def _outliers_by(state: State) -> dict[str, Any]:
    """What outliers of the newest slice are found by, as `Output` takes it; nothing where the report has them."""
    if state.cross_predicted is None:
        return {}
    with precision(state.config):
        return {"cross_predicted": state.cross_predicted, "seen": _newest(state.core.window)}


def _output(state: State, report: Report, given: DeviceSlice | None = None) -> Output:
    """A report in units of the data; the slice, where it is at hand."""
    with precision(state.config):
        below_zero = negative(state.config, [state.core])
    output = Output(state.config, Scaling.of(state.config, state.unit), (report,), negative=below_zero)
    return output if given is None else replace(output, given=given, indices=given.indices, noticed=given.noticed)


def _on_device(state: State, values: Any, mask: Any) -> DeviceSlice:
    validated = as_any_slice(state.shape, state.entry_capacity is not None, values, mask)
    return DeviceSlice.of(validated, state.entry_capacity)


def _with_unit(state: State, first: AnySlice) -> State:
    """Fix the unit when the first data other than 0 arrive; what was learned from zeros alone is dropped."""
    if state.unit > 0:
        return state
    unit = first_unit(first)
    if unit == 0:
        return state
    with precision(state.config):
        core = blank(state.config, state.shape, state.entry_capacity, state.slots)
    return replace(state, unit=unit, core=replace(core, window=state.core.window))
