"""How long a warm step on generated video takes, and frames a second: ``python -m benchmarks.video``.

The compiled step alone (minimum of 15, mean over four slices, one of which looks for births and deaths) beside the
plain matrix products of its sweeps, then slice after slice: with
results left where they are, and with low rank and outlier probabilities fetched one slice behind. Needs numpy and jax.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import undertow as ut
from undertow.engine import functional
from undertow.inputs.dense import as_slice
from undertow.inputs.scaling import Given, Scaling
from undertow.model.step import advance


def frames(shape: tuple[int, int], count: int, observed: float, outliers: float) -> list[np.ndarray]:
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


def quickest(work, times: int) -> float:
    """Milliseconds."""
    least = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        jax.block_until_ready(work())
        least = min(least, time.perf_counter() - begun)
    return least * 1e3


def step_alone(model: ut.RobustCP, slices: list[np.ndarray]) -> str:
    """The compiled step over some slices, and what it is of the products of its sweeps."""
    times, sweeps = [], []
    for x in slices:
        least, iterations = one_step(model, x)
        times.append(least * 1e3)
        sweeps.append(iterations)
        model.update(x)
    places = functional.working(model.state).max_rank
    packed, window = places * (places + 1) // 2, model.config.window
    one, other = jnp.ones((window * x.shape[0], x.shape[1])), jnp.ones((x.shape[1], packed))
    product = jax.jit(lambda one, other: jnp.dot(one, other, precision="highest"))
    quickest(lambda: product(one, other), 3)
    plain = quickest(lambda: product(one, other), 30) * np.mean(sweeps) * (4 + 3 * places / packed)
    return (
        f"step alone {np.mean(times):.1f} ms ({min(times):.1f} to {max(times):.1f}), {np.mean(sweeps):.2g} sweeps, "
        f"{np.mean(times) / plain:.1f} × their plain products"
    )


def one_step(model: ut.RobustCP, x: np.ndarray) -> tuple[float, int]:
    """Seconds of the compiled step from the present state, and its sweeps."""
    state = model.state
    settings, given = functional.working(state), Given(as_slice(x))
    values, mask = given.values(Scaling.of(state.config, state.unit)), given.mask()
    least = float("inf")
    for _ in range(15):
        core = jax.block_until_ready(functional.copied(state).core)
        begun = time.perf_counter()
        _, report = jax.block_until_ready(advance(core, values, mask, settings, holes=functional.holes(state)))
        least = min(least, time.perf_counter() - begun)
    return least, int(report.iterations)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="144x176")
    parser.add_argument("--slices", type=int, default=40, help="timed, after the window has been filled")
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--plain", action="store_true", help="no outliers, robust=False, noise='shared'")
    options = parser.parse_args()
    shape = tuple(int(size) for size in options.shape.split("x"))
    settings = {"robust": False, "noise": "shared"} if options.plain else {}
    stream = frames(shape, 28 + options.slices, options.observed, 0.0 if options.plain else 0.02)
    model = ut.RobustCP("fixed", max_rank=15, window=20, **settings)
    for x in stream[:24]:
        rank = model.update(x).rank
    print(f"{jax.devices()[0].device_kind}, {options.shape}, {options.observed:.0%} observed, rank {rank}")
    print(step_alone(model, stream[24:28]), flush=True)
    begun = time.perf_counter()
    for x in stream[28:]:
        result = model.update(x)
    result.rank  # noqa: B018 - waits for all
    print(f"results left: {options.slices / (time.perf_counter() - begun):.0f} frames/s", flush=True)
    begun, last = time.perf_counter(), None
    for x in [*stream[28:], None]:
        result = None if x is None else model.update(x)
        if last is not None:
            last.low_rank, last.outlier_probability  # noqa: B018
        last = result
    print(f"fetched one behind: {options.slices / (time.perf_counter() - begun):.0f} frames/s")


if __name__ == "__main__":
    main()
