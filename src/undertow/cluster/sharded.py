"""Slices larger than one device: the same compiled step over a mesh of devices, of one process or of several.

The entries of the window and the rows of the longest mode's factor are split along that mode. A row of it is solved by
its own entries, where they lie. Statistics of the other factors, of time, of the noise and of the bound are sums over
the split mode: every device adds up its part, and the compiler puts in the reduction. So what is sent per sweep,

    W · Π_{n≠split} I_n · (R(R+1)/2 + R) numbers and a few smaller ones,

does not depend on how long the split mode is. The answer is that of one device, given slices with that mode first, but
for rounding: a candidate component is fitted mode by mode, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather

from undertow.cluster.communication import Communication, communication
from undertow.cluster.mesh import Split
from undertow.config import Config, make_config
from undertow.engine.exclusive import Exclusive, check_process, exclusive
from undertow.engine.learner import Learner
from undertow.engine.output import Output
from undertow.engine.state import State, precision
from undertow.estimator import RobustCP
from undertow.inputs.dense import Slice, as_slice, peek_shape
from undertow.inputs.scaling import Scaling, first_unit
from undertow.inputs.transfer import DeviceSlice
from undertow.model.step import init_core
from undertow.model.step import step as model_step
from undertow.results import Result

_Abstract: Any = jax.ShapeDtypeStruct


@dataclass(frozen=True)
class Cost:
    """What one step costs each device, as the compiled program says.

    Attributes:
        communication: Bytes received from the others.
        memory: Bytes of state, slice, results and temporary arrays together.
    """

    communication: Communication
    memory: int

    @classmethod
    def of(cls, compiled: Any) -> Cost:
        """Read off a compiled step."""
        sizes = compiled.memory_analysis()
        used = sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        return cls(communication(compiled.as_text()), int(used - sizes.alias_size_in_bytes))


class ShardedCP(Exclusive):
    """`undertow.RobustCP` for slices that no single device holds.

    Threads may share a model: one at a time learns or reads, the others wait. A process that was forked after the first
    slice gets an error; use "spawn".

    Args:
        devices: All devices to use, of all processes, in order; by default every one that JAX has.
        preset: As of `undertow.RobustCP`; "paper" is not possible.
        **settings: As of `undertow.RobustCP`.

    Examples:
        >>> import numpy as np
        >>> from undertow.cluster.sharded import ShardedCP
        >>> model = ShardedCP(max_rank=3, window=4)  # doctest: +SKIP
        >>> result = model.update(np.ones((6, 5)))  # doctest: +SKIP
        >>> result.mean.shape, model.rows  # doctest: +SKIP
        ((6, 5), slice(0, 6, None))
    """

    def __init__(
        self, devices: Sequence[jax.Device] | None = None, *, preset: str = "default", **settings: Any
    ) -> None:
        self._params = {"preset": preset, **settings}
        self.config = make_config(preset, **settings)
        if self.config.start == "svd" or not self.config.robust:
            raise ValueError(
                "a sharded model must be robust and start warm, got "
                f"robust={self.config.robust} and start={self.config.start!r}: leave both out."
            )
        self._devices = tuple(jax.devices() if devices is None else devices)
        self._split: Split | None = None
        self._state: State | None = None
        self._compiled: Any = None

    @classmethod
    def of(cls, model: RobustCP, devices: Sequence[jax.Device] | None = None) -> ShardedCP:
        """A sharded model that goes on from one device's, such as one that was loaded.

        Args:
            model: Has learned slices with their longest mode first: what `gathered` gave, for one.
            devices: As of `ShardedCP`.
        """
        sharded = cls(devices, **model.get_params())
        sharded._state = model.state
        return sharded

    @exclusive
    def gathered(self) -> RobustCP:
        """The model on one device, for slices with their longest mode first: to be saved, or to go on with there.

        Every process gets it, and each must ask for it.
        """
        self._known()
        assert self._state is not None
        with precision(self._state.config):
            core = jax.tree.map(jnp.asarray, process_allgather(self._state.core, tiled=True))
        model = RobustCP(**self._params)
        model._learner = Learner(replace(self._state, core=core))
        return model

    @property
    def rows(self) -> slice:
        """Which part of the longest mode this process holds: all of it where there is one process only."""
        return self._known().rows

    @property
    def steps(self) -> int:
        """Slices seen."""
        return 0 if self._state is None else self._state.steps

    @exclusive
    def update(self, x: Any, mask: Any = None) -> Result:
        """Learn from one slice.

        Args:
            x: The slice, the same in every process; NaN where missing. A `numpy.memmap` will do: a process reads its
                own `rows` only, and all of it as long as the unit of the data is not known (mostly the first slice).
            mask: True where observed, if NaN does not say it.

        Returns:
            The slice as the model sees it: the `rows` of this process.

        Raises:
            TypeError: `x` or `mask` does not hold real numbers.
            ValueError: The slice has another shape than those before, infinite values, or a longest mode that cannot
                be split evenly.
        """
        check_process()
        split = self._split or self._split_for(peek_shape(x))
        if peek_shape(x) != split.shape:
            as_slice(x, mask, shape=split.shape)  # which says what is wrong
        alone = jax.process_count() == 1
        whole = as_slice(x, mask) if alone or self._state is None or self._state.unit == 0 else None
        local = whole if alone and whole else _agreed(split, x, mask)
        state = self._state
        if state is None:
            config = self.config.sized(split.shape)
            state = State(config, split.inner_shape, 0.0, 0, self._new_core(config, split))
        if state.unit == 0:
            assert whole is not None
            state = replace(state, unit=first_unit(whole))
            if state.unit > 0:  # what was learned from zeros alone is dropped
                state = replace(state, core=replace(self._new_core(state.config, split), window=state.core.window))
        self._split, self._state = split, state
        return self._stepped(split, state, local)

    def cost(self) -> Cost:
        """What a step costs, by the compiled program; known after the first slice."""
        self._known()
        return Cost.of(self._compiled)

    def _known(self) -> Split:
        if self._split is None:
            raise ValueError("this model has seen nothing yet: call update first.")
        return self._split

    def _split_for(self, shape: tuple[int, ...]) -> Split:
        """How the first slice lies on the devices; a state that came from one of them is spread in the same way."""
        split = Split.of(shape, self._devices)
        state = self._state
        if state is None:
            return split
        if state.shape != split.inner_shape:
            raise ValueError(
                f"x must have shape {state.shape} with its longest mode first, like what this model has learned, "
                f"got {shape}: start a new model for slices of another shape."
            )
        with precision(state.config):
            placed = jax.tree.map(np.asarray, state.core)
            self._state = replace(state, core=jax.device_put(placed, split.shardings(placed)))
        return split

    def _new_core(self, config: Config, split: Split) -> Any:
        """An empty window and no components, made where they belong: one device could not hold them."""
        with precision(config), jax.set_mesh(split.mesh):
            make, placed = _empty(config, split)
            return jax.jit(make, out_shardings=jax.tree.map(lambda array: array.sharding, placed))()

    def _stepped(self, split: Split, state: State, local: Slice) -> Result:
        config, scaling = state.config, Scaling.of(state.config, state.unit)
        with precision(config), jax.set_mesh(split.mesh):
            values, mask = split.placed(scaling.scaled(local.values)), split.placed(local.mask)
            settings = split.everywhere(config.settings())
            if self._compiled is None:
                self._compiled = _compiled(split, state.core, values, mask, settings)
            core, report = self._compiled(state.core, values, mask, settings)
        with precision(config):
            report = jax.tree.map(split.returned, report)
        self._state = replace(state, steps=state.steps + 1, core=core)
        given = DeviceSlice(local)
        return Result(Output(config, scaling, (report,), given, noticed=given.noticed))


def cost(shape: tuple[int, ...], devices: Sequence[jax.Device] | None = None, **settings: Any) -> Cost:
    """What a step for slices of this shape would cost: it is compiled, and nothing is allocated.

    Args:
        shape: (I_1, …, I_N).
        devices: As of `ShardedCP`.
        **settings: As of `ShardedCP`.
    """
    config = make_config(**settings).sized(shape)
    split = Split.of(shape, tuple(jax.devices() if devices is None else devices))
    with precision(config), jax.set_mesh(split.mesh):
        core = _empty(config, split)[1]
        dtype = core.window.values.dtype
        slices = [_Abstract(split.inner_shape, kind, sharding=split.sharding) for kind in (dtype, bool)]
        return Cost.of(_compiled(split, core, slices[0], slices[1], split.everywhere(config.settings())))


def _agreed(split: Split, x: Any, mask: Any) -> Slice:
    """This process's part, once each has found its own in order; else none learns, and none waits for another."""
    refusal: Exception | None = None
    try:
        local = as_slice(split.local(x), None if mask is None else split.local(mask))
    except (TypeError, ValueError) as error:
        refusal = error
    refused = np.flatnonzero(process_allgather(np.array([refusal is not None])))
    if refusal is not None:
        raise refusal
    if len(refused):
        raise ValueError(
            f"process {refused[0]} has refused its part of x, so none has learned it: mend it as that one says."
        )
    return local


def _empty(config: Config, split: Split) -> tuple[Callable[[], Any], Any]:
    """What makes a state that has seen nothing, and the places of its arrays."""
    make = partial(init_core, config.settings(), split.inner_shape)
    shapes = jax.eval_shape(make)
    placed = jax.tree.map(
        lambda array, sharding: _Abstract(array.shape, array.dtype, sharding=sharding),
        shapes,
        split.shardings(shapes),
    )
    return make, placed


def _compiled(split: Split, core: Any, values: Any, mask: Any, settings: Any) -> Any:
    """The step of the model for arrays that lie like these, and its results where they belong."""
    function = model_step.__wrapped__
    arguments = core, values, mask, settings
    made = tuple(map(split.shardings, jax.eval_shape(function, *arguments)))
    return jax.jit(function, donate_argnums=0, out_shardings=made).lower(*arguments).compile()
