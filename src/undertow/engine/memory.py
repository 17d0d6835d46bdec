"""How much memory a model takes, about, and refusal of what cannot fit before anything is allocated."""

from __future__ import annotations

import math
import os

import jax

from undertow.config import Config
from undertow.model import platform
from undertow.model.defaults import WALK_RATIOS


def check_memory(config: Config, shape: tuple[int, ...], entries: int | None = None) -> None:
    """Refuse a model that does not fit into the memory now free.

    Args:
        config: Settings of the model.
        shape: Shape of a slice.
        entries: Capacity for observed entries of a slice, where only these are kept.

    Raises:
        ValueError: It does not fit.
    """
    needed = sum(dense_bytes(config, shape) if entries is None else sparse_bytes(config, shape, entries))
    free = free_memory()
    if needed > free:
        raise ValueError(
            f"x of shape {shape} with window={config.window} and "
            f"max_rank={config.rank_limit(shape, sparse=entries is not None)} needs about "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free: "
            "use a smaller window or max_rank, or cut the slices into smaller ones."
        )


def check_fleet_memory(config: Config, shape: tuple[int, ...], members: int, chunk: int) -> None:
    """Refuse a fleet that does not fit into the memory now free.

    Args:
        config: Settings of all members.
        shape: Shape of a slice.
        members: Number of members that there is capacity for.
        chunk: Members per chunk.

    Raises:
        ValueError: It does not fit.
    """
    what = f"members of shape {shape} with window={config.window} and max_rank={config.rank_limit(shape)}"
    advice = "use fewer members, or a smaller window or max_rank"
    check_members_memory(members, what, advice, *dense_bytes(config, shape), chunk)


def check_members_memory(members: int, what: str, advice: str, state: int, work: int, chunk: int) -> None:
    """Refuse members that do not fit into the memory now free.

    Args:
        members: Their number.
        what: What they are called.
        advice: What to do about it.
        state: Bytes that one of them keeps.
        work: Bytes of its temporary arrays in a step.
        chunk: Members per chunk.

    Raises:
        ValueError: They do not fit.
    """
    needed = 2 * members * state + min(members, chunk * platform.current().chunk_threads) * work
    free = free_device_memory()
    if needed > free:
        raise ValueError(
            f"{members} {what} need about {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free: {advice}."
        )


def dense_bytes(config: Config, shape: tuple[int, ...]) -> tuple[int, int]:
    """Bytes of one state that keeps all entries, about, and of the temporary arrays of a step."""
    size = 8 if config.dtype == "float64" else 4
    entries, rank = math.prod(shape), config.rank_limit(shape)
    packed = rank * (rank + 1) // 2
    state = (config.window * (5 * size + 1) + 5 * len(WALK_RATIOS) * size) * entries
    rows = 8 * (sum(shape) + config.window) * rank**2 * size
    work = config.window * entries * 11 * size
    contracted = sorted((config.window, *shape))[-2]  # the sweeps sum over the two biggest axes first
    work += 4 * config.window * entries // contracted * packed * size
    work += 3 * max(shape) ** 2 * size if config.start == "svd" else 0
    return state + rows, work


def sparse_bytes(config: Config, shape: tuple[int, ...], capacity: int) -> tuple[int, int]:
    """The same for a state that keeps observed entries only: per entry, and per row."""
    size = 8 if config.dtype == "float64" else 4
    rank, entries, rows = config.rank_limit(shape, sparse=True), config.window * capacity, sum(shape) + config.window
    state = entries * (2 * size + 1 + 4 * (2 * len(shape) - 1)) + 2 * rows * rank**2 * size
    work = entries * 14 * size + rows * (6 * rank**2 + 3 * rank * (rank + 1) + len(shape) ** 2 * rank) * size
    return state, work


def free_memory() -> int:
    """Bytes of main memory that are free now."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux: all there is, since what is free is not known
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62


def free_device_memory() -> int:
    """Bytes that are free where the arrays live."""
    statistics = jax.devices()[0].memory_stats() if platform.current().separate_memory else None
    return statistics["bytes_limit"] - statistics["bytes_in_use"] if statistics else free_memory()
