"""What a sweep must cost, counted by hand: the lines that measurements are held against.

With N = W · I_1 ⋯ I_N entries in the window, R components and P = R(R+1)/2 packed columns of a symmetric matrix, one
sweep multiplies the window with

    2 P columns   weighted Gram matrices, over the second biggest axis and over the biggest
    2 R columns   projections of the targets, over the same two axes
      R columns   x̄, the low rank of the window
    2 P columns   Var x, its two terms side by side

and each column costs a multiplication and an addition per entry: 2 N (4 P + 3 R) operations. Not counted are what is
smaller by the size of an axis (collecting the other axes, O(N P / I)), the solves O((Σ I + W) R³), everything entry by
entry (outliers, noise, level) and adding and pruning components. So a step that does nothing but products would
reach ratio 1.
"""

from __future__ import annotations

import math

FLOAT = 4
"""Bytes of a number in single precision."""


def packed(max_rank: int) -> int:
    """P, the columns of a packed symmetric R × R matrix."""
    return max_rank * (max_rank + 1) // 2


def sweep_flops(shape: tuple[int, ...], window: int, max_rank: int) -> float:
    """Operations of the matrix products of one sweep, 2 N (4 P + 3 R)."""
    return 2.0 * window * math.prod(shape) * (4 * packed(max_rank) + 3 * max_rank)


def step_bytes(shape: tuple[int, ...], window: int, max_rank: int) -> float:
    """Memory of one step in single precision, leading terms: only its growth is compared, not its size.

    About 25 arrays of the size of the window (the state before and after, and what a sweep works with), four of
    N / I × P for the products, and the covariances of all rows before, after and in work.
    """
    entries = window * math.prod(shape)
    contracted = sorted((window, *shape))[-2]
    rows = sum(shape) + window
    return FLOAT * (25.0 * entries + 4 * entries // contracted * packed(max_rank) + 4 * rows * max_rank**2)


def sparse_flops(shape: tuple[int, ...], entries: int, window: int, max_rank: int) -> float:
    """Operations of the sums over entries in one sweep: each of the N + 1 axes multiplies N rows of P + R numbers and
    adds them up, x̄ and Var x multiply and add rows of R and of 2P numbers of every mode; and the solves of all rows."""
    modes = len(shape)
    columns = (modes + 1) * (packed(max_rank) + max_rank) + max_rank + 2 * packed(max_rank)
    return 2.0 * window * entries * modes * columns + (sum(shape) + window) * max_rank**3


def sparse_bytes(shape: tuple[int, ...], entries: int, window: int, max_rank: int) -> float:
    """Memory of one step over observed entries, leading terms: some twenty numbers an entry, and tables of all rows."""
    rows = sum(shape) + window
    return FLOAT * (20.0 * window * entries + rows * (4 * max_rank**2 + 6 * packed(max_rank)))
