"""How long a warm step on generated video takes, and frames a second.

The compiled step alone (minimum of 15, mean over four slices, one of which tries to add and to prune components) beside
the plain matrix products of its sweeps, then slice after slice: with results left where they are, and with low rank and
outlier probabilities fetched one slice behind. Needs numpy and jax only:
`python -c "from undertow.lab.studies.video import video; video((1080, 1920))"`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import undertow as ut
from undertow.engine.capacity import missing_capacity
from undertow.inputs.dense import as_slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.transfer import DeviceSlice
from undertow.model.step import step as model_step

Frame = NDArray[np.float32]


def frames(shape: tuple[int, ...], count: int, observed: float, outliers: float) -> list[Frame]:
    """Rank 8, noise 0.1, some entries off by 5, some missing."""
    draw = np.random.default_rng(0)
    left, right = draw.normal(size=(shape[0], 8)), draw.normal(size=(shape[1], 8))
    made = []
    for _ in range(count):
        x = (left * draw.normal(size=8)) @ right.T + 0.1 * draw.normal(size=shape)
        x[draw.random(shape) < outliers] += 5
        x[draw.random(shape) >= observed] = np.nan
        made.append(x.astype(np.float32))
    return made


def quickest(work: Callable[[], Any], times: int) -> float:
    """Milliseconds."""
    least = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        jax.block_until_ready(work())  # type: ignore[no-untyped-call]
        least = min(least, time.perf_counter() - begun)
    return least * 1e3


def step_alone(model: ut.RobustCP, slices: list[Frame]) -> str:
    """The compiled step over some slices, and what it is of the products of its sweeps."""
    times, sweeps = [], []
    for x in slices:
        least, iterations = one_step(model, x)
        times.append(least * 1e3)
        sweeps.append(iterations)
        model.update(x)
    assert model.state is not None
    capacity = model.state.capacity
    packed, window = capacity * (capacity + 1) // 2, model.config.window
    one, other = jnp.ones((window * x.shape[0], x.shape[1])), jnp.ones((x.shape[1], packed))
    product = jax.jit(lambda one, other: jnp.dot(one, other, precision="highest"))
    quickest(lambda: product(one, other), 3)
    plain = quickest(lambda: product(one, other), 30) * np.mean(sweeps) * (4 + 3 * capacity / packed)
    return (
        f"step alone {np.mean(times):.1f} ms ({min(times):.1f} to {max(times):.1f}), {np.mean(sweeps):.2g} sweeps, "
        f"{np.mean(times) / plain:.1f} × their plain products"
    )


def one_step(model: ut.RobustCP, x: Frame) -> tuple[float, int]:
    """Seconds of the compiled step from the present state, and its sweeps."""
    state = model.state
    assert state is not None  # slices were learned before
    settings, given = state.settings, DeviceSlice(as_slice(x))
    values, mask = given.values(Scaling.of(state.config, state.unit)), given.mask()
    least = float("inf")
    for _ in range(15):
        core = jax.block_until_ready(state.copy().core)  # type: ignore[no-untyped-call]
        begun = time.perf_counter()
        learned = model_step(core, values, mask, settings, holes=missing_capacity(state))
        _, report = jax.block_until_ready(learned)  # type: ignore[no-untyped-call]
        least = min(least, time.perf_counter() - begun)
    return least, int(report.iterations)


def video(
    shape: tuple[int, int] = (144, 176),
    slices: int = 40,
    observed: float = 0.5,
    plain: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Time the step alone, then whole updates, and say what came out.

    Args:
        shape: of a frame.
        slices: timed, after the window has been filled.
        observed: fraction of the pixels.
        plain: no outliers, `robust=False, noise="shared"`.
        say: shows a line.
    """
    settings: dict[str, Any] = {"robust": False, "noise": "shared"} if plain else {}
    stream = frames(shape, 28 + slices, observed, 0.0 if plain else 0.02)
    model = ut.RobustCP(max_rank=15, window=20, **settings)
    for x in stream[:24]:
        rank = model.update(x).rank
    sizes = "×".join(map(str, shape))
    say(f"{jax.devices()[0].device_kind}, {sizes}, {observed:.0%} observed, rank {rank}")
    say(step_alone(model, stream[24:28]))
    begun = time.perf_counter()
    for x in stream[28:]:
        result = model.update(x)
    result.rank  # noqa: B018 - waits for all
    say(f"results left: {slices / (time.perf_counter() - begun):.0f} frames/s")
    begun, last = time.perf_counter(), None
    for frame in [*stream[28:], None]:
        following = None if frame is None else model.update(frame)
        if last is not None:
            last.low_rank, last.outlier_probability  # noqa: B018
        last = following
    say(f"fetched one behind: {slices / (time.perf_counter() - begun):.0f} frames/s")
