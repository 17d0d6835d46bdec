"""The reference: the same number of operations as a plain matrix product, in the same run, on the same device."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.lab.speed.formula import packed

_LEAST_SECONDS = 0.02  # of one timing: shorter ones measure the clock and the call


@dataclass(frozen=True)
class Product:
    """The fastest that a plain product was seen to run.

    Attributes:
        flops_per_second: with its operands in the cache or not, as the size has it.
    """

    flops_per_second: float

    def seconds(self, flops: float) -> float:
        """Time of this many operations at this speed."""
        return flops / self.flops_per_second


def plain_product(shape: tuple[int, ...], window: int, max_rank: int, repetitions: int = 5) -> Product:
    """Time (W·ΠI / I × I) by (I × P) in full single precision, I the biggest mode: the product that sweeps are made of.

    It is repeated inside one compiled loop, so that calls cost nothing. Each product feeds the next one a number too
    small to matter: otherwise the compiler would see that all are the same and do one.
    """
    inner, columns = max(shape), packed(max_rank)
    outer = window * math.prod(shape) // inner
    draw = np.random.default_rng(0)
    left = jnp.asarray(draw.standard_normal((outer, inner)), jnp.float32)
    right = jnp.asarray(draw.standard_normal((inner, columns)), jnp.float32)
    flops = 2.0 * outer * inner * columns
    count, best = 1, math.inf
    while (seconds := _time(left, right, count)) < _LEAST_SECONDS:
        count *= 2 if seconds > _LEAST_SECONDS / 4 else 4
    for _ in range(repetitions):
        best = min(best, _time(left, right, count) / count)
    return Product(flops / best)


def _time(left: Array, right: Array, count: int) -> float:
    tiny = np.float32(1e-30)
    _products(left, right, np.int32(count), tiny).block_until_ready()  # compiled, and the device awake
    begin = time.perf_counter()
    _products(left, right, np.int32(count), tiny).block_until_ready()
    return time.perf_counter() - begin


@jax.jit
def _products(left: Array, right: Array, count: Array, tiny: Array) -> Array:
    def again(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        columns, product = carry
        columns = columns + tiny * product[0, 0]
        return columns, jnp.matmul(left, columns, precision=lax.Precision.HIGHEST)

    start = jnp.zeros((left.shape[0], right.shape[1]), left.dtype)
    _, product = lax.fori_loop(0, count, again, (right, start))
    return jnp.asarray(product)
