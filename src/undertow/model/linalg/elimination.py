"""Gauss–Jordan elimination of many small matrices together.

On a CPU every operation runs over all of them. LAPACK takes them one by one, and several programs that call it can
wait for each other for ever. On a GPU one kernel holds a few in registers from the first pivot to the last: the
vendor's routines come as a dozen kernels, each of which waits for the host, and take three times as long for one matrix
as well as for a million.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model import platform
from undertow.model.defaults import ELIMINATION_NUMBERS, KERNEL_LARGEST, KERNEL_NUMBERS
from undertow.model.flow import starts, where


def eliminated(matrices: Array) -> tuple[Array, Array]:
    """Inverses of (rows, R, R), and the pivots (rows, R) met on the way, whose product is the determinant."""
    size = matrices.shape[-1]
    # A kernel is not divided among devices, operations are.
    if platform.on_cpu() or platform.on_mesh() or size > KERNEL_LARGEST or not kernels_work():
        return one_by_one(matrices)
    chosen: tuple[Array, Array] = lax.platform_dependent(
        matrices, cpu=one_by_one, default=in_registers
    )  # a model may live on either
    return chosen


def one_by_one(matrices: Array) -> tuple[Array, Array]:
    """Column by column, all matrices in each operation; on CPUs as many of them as stay in cache."""
    rows, size, _ = matrices.shape
    if matrices.size <= ELIMINATION_NUMBERS or not platform.on_cpu():
        return _one_by_one(matrices)
    block = max(1, ELIMINATION_NUMBERS // size**2)
    filling = jnp.broadcast_to(np.eye(size, dtype=matrices.dtype), (-rows % block, size, size))
    blocks = jnp.concatenate([matrices, filling]).reshape(-1, block, size, size)
    inverses, pivots = lax.map(_one_by_one, blocks)
    return inverses.reshape(-1, size, size)[:rows], pivots.reshape(-1, size)[:rows]


def _one_by_one(matrices: Array) -> tuple[Array, Array]:
    count, size, _ = matrices.shape
    eye = np.eye(size, dtype=matrices.dtype)

    def turn(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        work, pivots = carry  # rows come last: every operation runs over all matrices
        unit = lax.dynamic_slice(eye, starts(step, 0, 2), (1, size), allow_negative_indices=False).reshape(size, 1)
        row, column = (
            lax.dynamic_slice(work, starts(step, axis, 3), sizes, allow_negative_indices=False).reshape(-1, count)
            for axis, sizes in enumerate(((1, size, count), (size, 1, count)))
        )
        pivot = lax.dynamic_slice(row, starts(step, 0, 2), (1, count), allow_negative_indices=False)
        # What is subtracted from the pivot's own row leaves 1/pivot of it: pivot − 1 times that.
        row = where(unit > 0, 1, row) / pivot
        work = where(unit[:, 0, None] > 0, unit[:, None], work) - (column - unit)[:, None] * row
        return work, lax.dynamic_update_slice(pivots, pivot, starts(step, 0, 2), allow_negative_indices=False)

    work = jnp.moveaxis(matrices, 0, -1)
    work, pivots = lax.fori_loop(0, size, turn, (work, work[0]))
    return jnp.moveaxis(work, -1, 0), pivots.T


def in_registers(matrices: Array, interpret: bool = False) -> tuple[Array, Array]:
    """The same by a kernel, a few matrices at a time; `interpret` runs it without a GPU."""
    from jax.experimental import pallas

    count, size, _ = matrices.shape
    padded = 1 << (size - 1).bit_length()  # kernels want powers of two
    block = max(1, KERNEL_NUMBERS // padded**2)
    more, beyond = -count % block, padded - size
    filled = jnp.pad(matrices, ((0, more), (0, beyond), (0, beyond)))
    # What is added must be invertible too: 1 on the diagonal.
    rows, positions = jnp.arange(count + more)[:, None, None], jnp.arange(padded)
    added = (positions[:, None] == positions) & ((rows >= count) | (positions >= size))
    filled = where(added, 1, filled)
    square = pallas.BlockSpec((block, padded, padded), lambda number: (number, 0, 0))
    inverses, pivots = pallas.pallas_call(
        partial(_eliminate, size=size),
        grid=(filled.shape[0] // block,),
        in_specs=[square],
        out_specs=[square, pallas.BlockSpec((block, padded), lambda number: (number, 0))],
        out_shape=[filled, filled[:, :, 0]],
        interpret=interpret,
        **({} if interpret else {"compiler_params": _warps(padded)}),
    )(filled)
    return inverses[:count, :size, :size], pivots[:count, :size]


def _eliminate(matrices: Any, inverses: Any, pivots: Any, *, size: int) -> None:
    """The kernel: references to a block of matrices, of their inverses and of their pivots.

    A row cannot be picked out of registers, but it can be summed out.
    """
    start = matrices[...]
    down, along = (lax.broadcasted_iota(jnp.int32, start.shape, axis) for axis in (1, 2))
    position = lax.broadcasted_iota(jnp.int32, start.shape[:2], 1)

    def turn(step: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        work, pivots = carry
        row = where(down == step, work, 0).sum(axis=1)
        column = where(along == step, work, 0).sum(axis=2)
        pivot = where(position == step, row, 0).sum(axis=1)[:, None]
        row = where(position == step, 1, row) / pivot
        column = where(position == step, 0, column)
        work = where(along == step, 0, work) - column[:, :, None] * row[:, None, :]
        work = where(down == step, jnp.broadcast_to(row[:, None, :], work.shape), work)
        return work, where(position == step, pivot, pivots)

    first, last = jnp.int32(0), jnp.int32(size)
    inverses[...], pivots[...] = lax.fori_loop(first, last, turn, (start, jnp.ones_like(start[:, :, 0])))


def _warps(padded: int) -> Any:
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=1 if padded <= 16 else 4)


@cache
def kernels_work() -> bool:
    """Whether the GPU takes Pallas kernels; old ones and those of other makers need not."""
    largest = np.zeros((1, KERNEL_LARGEST, KERNEL_LARGEST), np.float32)
    try:
        with jax.default_device(jax.local_devices(backend=jax.default_backend())[0]):
            jax.jit(in_registers).lower(largest).compile()
    except Exception:  # whatever the reason, there is another way
        return False
    return True
