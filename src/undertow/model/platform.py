"""Every difference between CPUs and other devices: a table for the host's side, and the two questions that compiled
programs ask while they are traced (`on_cpu`, `on_mesh`)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax


@dataclass(frozen=True)
class Platform:
    """How the host works with a kind of device.

    Attributes:
        separate_memory: Whether arrays must be copied between the host and the device.
        pipeline_entries: Entries from which on a slice is learned in a thread; None for never. A compiled step on a
            GPU asks the host after every sweep whether to go on, so the call lasts as long as the step; on a CPU it
            returns immediately. For smaller slices, changing threads takes longer than checking the next one.
        chunk_members: Largest number of fleet members in one batch. On CPUs it should fit into the cache.
        chunk_threads: Chunks that are stepped at the same time, since one alone keeps neither all cores nor a GPU busy.
        smallest_batch: Fewest members that are gathered into a batch.
        batch_fill: How full a batch must be, or else smaller ones are used: starting one costs little on CPUs, and much
            on GPUs.
    """

    separate_memory: bool
    pipeline_entries: int | None
    chunk_members: int
    chunk_threads: int
    smallest_batch: int
    batch_fill: float


CPU = Platform(
    separate_memory=False,
    pipeline_entries=None,
    chunk_members=128,
    chunk_threads=os.cpu_count() or 1,
    smallest_batch=8,
    batch_fill=0.75,
)
ACCELERATOR = Platform(
    separate_memory=True,
    pipeline_entries=200_000,
    chunk_members=32768,
    chunk_threads=4,
    smallest_batch=64,
    batch_fill=0.25,
)


def current() -> Platform:
    """Of JAX's default backend."""
    return CPU if on_cpu() else ACCELERATOR


def on_host() -> Any:
    """A context in which programs run on the host, where JAX has a CPU beside the device."""
    return jax.default_device(_cpu()) if current().separate_memory else contextlib.nullcontext()


@cache
def _cpu() -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # it was switched off
        return None


def on_cpu() -> bool:
    """Whether programs are traced for a CPU. There large windows are summed slice by slice, in cache, and a branch
    costs nothing; on a GPU every question to the host costs more than computing both branches."""
    return jax.default_backend() == "cpu"


def on_mesh() -> bool:
    """Whether programs are traced for slices spread over several devices (`undertow.cluster.sharded`). There what lies
    on one device must not be moved to the others: no rows of several axes end to end, no entry by its position."""
    return not jax.sharding.get_abstract_mesh().empty
