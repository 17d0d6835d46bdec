"""How many slices a second a fleet takes in, against a Python loop over single models: ``python -m benchmarks.fleet``.

Streams of ranks 1 to 4, a tenth of the entries missing, a twentieth outliers. Windows are filled first; then fleet and
loop take turns on the same slices in the same run. "Host to host": data come as NumPy arrays, and low rank, outlier
probabilities and statuses are fetched. "On the device": results stay there, and only their arrival is waited for.
Needs numpy and jax only.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

import undertow as ut


def streams(members: int, slices: int, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    """(slices, members, *shape), NaN where missing."""
    draw = np.random.default_rng(seed)
    left = draw.normal(size=(members, shape[0], 4)).astype(np.float32)
    left *= (np.arange(4) < draw.integers(1, 5, members)[:, None])[:, None]
    right = draw.normal(size=(members, shape[1], 4)).astype(np.float32)
    rows = draw.normal(size=(members, 4)).astype(np.float32)
    x = np.empty((slices, members, *shape), np.float32)
    for t in range(slices):
        rows = 0.95 * rows + 0.3 * draw.normal(size=rows.shape).astype(np.float32)
        x[t] = np.matmul(left * rows[:, None], np.swapaxes(right, 1, 2))
        x[t] += 0.1 * draw.standard_normal(x[t].shape, dtype=np.float32)
        x[t] += (
            10 * (draw.random(x[t].shape, dtype=np.float32) < 0.05) * draw.standard_normal(x[t].shape, dtype=np.float32)
        )
        x[t][draw.random(x[t].shape, dtype=np.float32) < 0.1] = np.nan
    return x


def main() -> None:
    """Print both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=256)
    parser.add_argument("--slices", type=int, default=10, help="timed, after the windows have been filled")
    parser.add_argument("--shape", default="12x12")
    parser.add_argument("--window", type=int, default=20)
    parser.add_argument("--max-rank", type=int, default=5)
    parser.add_argument("--singles", type=int, default=16, help="members that the loop steps; 0: no loop")
    options = parser.parse_args()
    shape = tuple(int(size) for size in options.shape.split("x"))
    settings = {"window": options.window, "max_rank": options.max_rank}
    x = streams(options.members, options.window + 2 + options.slices, shape)
    fleet = ut.Fleet(options.members, shape, **settings)
    begun = time.perf_counter()
    for t in range(options.window + 2):
        fleet.update(x[t]).trouble  # noqa: B018
    device = jax.devices()[0]
    print(f"{device.device_kind} ({device.platform}), {options.members} members of {options.shape}, {settings}")
    print(f"compiled, and windows filled, in {time.perf_counter() - begun:.0f} s", flush=True)
    models = [ut.RobustCP("fixed", **settings) for _ in range(min(options.singles, options.members))]
    for i, model in enumerate(models):
        for t in range(options.window + 2):
            model.update(x[t, i]).rank  # noqa: B018
    host, kept, loop, sweeps = [], [], [], []
    for t in range(options.window + 2, len(x)):
        begun = time.perf_counter()
        result = fleet.update(x[t])
        jax.block_until_ready(result._outputs[0].reports)
        there = time.perf_counter()
        result.low_rank, result.outlier_probability, result.trouble  # noqa: B018
        kept.append(there - begun)
        host.append(time.perf_counter() - begun)
        sweeps.append((result.iterations.mean(), result.iterations.max()))
        if models:
            begun = time.perf_counter()
            for i, model in enumerate(models):
                one = model.update(x[t, i])
                one.low_rank, one.outlier_probability, one.status  # noqa: B018
            loop.append((time.perf_counter() - begun) / len(models))
        alone = f"; loop {1 / loop[-1]:.0f}" if loop else ""
        print(
            f"slice {t}: fleet {options.members / host[-1]:.0f} slices/s host to host, "
            f"{options.members / kept[-1]:.0f} on the device{alone}; "
            f"sweeps {sweeps[-1][0]:.1f} on average, {sweeps[-1][1]} at most",
            flush=True,
        )
    print(f"fleet, median: {options.members / np.median(host):.0f} slices/s host to host, ", end="")
    print(f"{options.members / np.median(kept):.0f} on the device")
    if loop:
        ratio = np.median(loop) * options.members / np.median(host)
        print(f"loop, median: {1 / np.median(loop):.0f} slices/s; fleet / loop {ratio:.1f}")


if __name__ == "__main__":
    main()
