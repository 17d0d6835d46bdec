"""How many slices a second a fleet takes in, against a Python loop over single models.

Streams of ranks 1 to 4, a tenth of the entries missing, a twentieth outliers. Windows are filled first; then fleet and
loop take turns on the same slices in the same run. "Host to host": data come as NumPy arrays, and low rank, outlier
probabilities and statuses are fetched. "On the device": results stay there, and only their arrival is waited for.
Needs numpy and jax only: `python -c "from undertow.lab.studies.fleet import fleet; fleet(members=1024)"`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

import undertow as ut


def slices_of_members(members: int, slices: int, shape: tuple[int, int], seed: int = 0) -> NDArray[np.float32]:
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


def fleet(
    members: int = 256,
    slices: int = 10,
    shape: tuple[int, int] = (12, 12),
    window: int = 20,
    max_rank: int = 5,
    singles: int = 16,
    say: Callable[[str], None] = print,
    model: str = "cp",
) -> None:
    """Time both, say every slice, and their ratio at the end.

    Args:
        members: streams in the fleet.
        slices: timed, after the windows have been filled.
        shape: of a slice.
        window: W.
        max_rank: R.
        singles: members that the loop steps; 0: no loop.
        say: shows a line.
        model: "cp", or "tracker", which has neither window nor rank to set.
    """
    settings: dict[str, Any] = {"window": window, "max_rank": max_rank} if model == "cp" else {}
    x = slices_of_members(members, window + 2 + slices, shape)
    together = ut.Fleet(members, shape, model=model, **settings)
    begun = time.perf_counter()
    for t in range(window + 2):
        together.update(x[t]).flags  # noqa: B018
    device = jax.devices()[0]
    sizes = "×".join(map(str, shape))
    say(f"{device.device_kind} ({device.platform}), {members} members of {sizes}, {model} {settings}")
    say(f"compiled, and windows filled, in {time.perf_counter() - begun:.0f} s")
    alone: Any = ut.RobustCP if model == "cp" else ut.Tracker
    models = [alone(**settings) for _ in range(min(singles, members))]
    for i, one in enumerate(models):
        for t in range(window + 2):
            one.update(x[t, i]).rank  # noqa: B018
    host, kept, loop = [], [], []
    for t in range(window + 2, len(x)):
        begun = time.perf_counter()
        result = together.update(x[t])
        jax.block_until_ready(_on_device(result._output))  # type: ignore[no-untyped-call]
        there = time.perf_counter()
        result.low_rank, result.outlier_probability, result.flags  # noqa: B018
        kept.append(there - begun)
        host.append(time.perf_counter() - begun)
        if models:
            begun = time.perf_counter()
            for i, one in enumerate(models):
                found = one.update(x[t, i])
                found.low_rank, found.outlier_probability, found.status  # noqa: B018
            loop.append((time.perf_counter() - begun) / len(models))
        beside = f"; loop {1 / loop[-1]:.0f}" if loop else ""
        say(
            f"slice {t}: fleet {members / host[-1]:.0f} slices/s host to host, "
            f"{members / kept[-1]:.0f} on the device{beside}; "
            f"sweeps {result.iterations.mean():.1f} on average, {result.iterations.max()} at most"
        )
    say(
        f"fleet, median: {members / np.median(host):.0f} slices/s host to host, "
        f"{members / np.median(kept):.0f} on the device"
    )
    if loop:
        ratio = np.median(loop) * members / np.median(host)
        say(f"loop, median: {1 / np.median(loop):.0f} slices/s; fleet / loop {ratio:.1f}")


def _on_device(output: Any) -> Any:
    """The arrays that a fleet's step computes."""
    if hasattr(output, "reports"):
        return output.reports
    return [(part.answer, part.found) for part in output.parts]
