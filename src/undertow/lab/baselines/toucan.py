"""TOUCAN: a free submodule of slices, tracked on the Grassmannian through the t-product (t-SVD).

K. Gilman, D. A. Tarzanagh, L. Balzano, "Grassmannian optimization for online tensor completion and tracking with the
t-SVD", IEEE Transactions on Signal Processing 70, 2022 (first: K. Gilman, L. Balzano, ICASSP 2020).

A slice of I × J is a lateral slice v of I × 1 tubes of length J, approximated by U ∗ w with U (I × R × J) orthonormal
under the t-product ∗: a matrix product in every face of the Fourier transform along the tubes (hats below). For a slice
with the observed entries Ω:

    w   = argmin ‖Ω ∘ (v − U ∗ w)‖²            conjugate gradients
    r   = Ω ∘ (v − U ∗ w), in every face then  r̂ ← (I − Û Ûᴴ) r̂
    θ   = arctan(‖r̂‖ / ‖ŵ‖)                    the greedy step; or step · ‖r̂‖ ‖ŵ‖
    Û   ← Û + [(cos θ − 1) Û ŵ / ‖Û ŵ‖ + sin θ r̂ / ‖r̂‖] ŵᴴ / ‖ŵ‖       along the geodesic, face by face

and the slice is U ∗ w with the new U. The start is the orthonormal part of a random U. Cost O(iterations · Π I · R).

Chosen where the source is silent or only takes matrices: more modes than two are tubes of more dimensions, transformed
along all of them (the t-product of order p; C. D. Martin, R. Shafer, B. LaRue, SIAM J. Sci. Comput. 35(1), 2013); a
vector has tubes of length one, which makes it GROUSE. The least squares are solved by SciPy's LSQR, analytically the
same as conjugate gradients on the normal equations, with a relative tolerance instead of an absolute one, and at most
100 iterations instead of one for each entry: the error was the same to three digits (three small recordings at ranks 1
to 10, taxi counts and a video at ranks 1 and 3), and all of them took 2 s a frame of that video at rank 20. R is at
most I. A slice without a single observation is skipped. With the greedy step equivariant to the unit of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from undertow.lab.baselines.baseline import RANK_AND_SCALE, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

Faces = NDArray[np.complex128]


@dataclass(frozen=True)
class Config:
    """Settings of TOUCAN; the defaults are those of the published experiments.

    rank        R, the tubal rank; at most the length of the first mode is used
    step        of the geodesic; None for the greedy one
    tolerance   of the least squares, relative
    iterations  of the least squares, at most
    seed        of the random start
    """

    rank: int = 5
    step: float | None = None
    tolerance: float = 1e-7
    iterations: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank", "iterations"), positive=("tolerance",))
        if self.step is not None:
            check_settings(self, positive=("step",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What TOUCAN carries on; a face is one frequency of the tubes.

    basis  Û, (faces, I, R)
    last   the last low-rank slice, shape
    count  slices learned from, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    basis: Faces
    last: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """The orthonormal part of a random tensor."""
    sizes = check_shape(shape)
    rank = min(config.rank, sizes[0])
    drawn = np.random.default_rng(config.seed).standard_normal((sizes[0], rank, *sizes[1:]))
    faces = np.fft.fftn(drawn, axes=_tubes(drawn, 2)).reshape(sizes[0], rank, -1)
    # U Vᴴ of the singular value decomposition commutes with conjugation, so the basis stays that of a real tensor.
    left, _, right = np.linalg.svd(np.moveaxis(faces, -1, 0), full_matrices=False)
    return State(config, sizes, left @ right, np.zeros(sizes), np.zeros(()))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Complete one slice and turn the submodule towards it; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    rank, zero = state.basis.shape[-1], np.zeros(state.shape)
    prediction = state.last.copy() if state.count > 0 else None
    if not observed.any():
        return state, BaselineResult(state.last.copy(), prediction, None, zero, rank, "no data")
    unit = float(np.abs(slice_values).max()) or 1.0  # keeps the squares within range
    config = state.config
    weights = _weights(state, slice_values / unit, observed)
    length = None if config.step is None else config.step * unit**2
    basis = _turned(state.basis, slice_values / unit, observed, weights, length)
    low_rank = unit * _compose(basis, weights, state.shape)
    if not finite(basis, low_rank):
        return state, BaselineResult(zero, prediction, None, np.abs(slice_values), rank, "diverged")
    score = np.where(observed, np.abs(slice_values - low_rank), 0.0)
    state = State(config, state.shape, basis, low_rank.copy(), state.count + 1)
    return state, BaselineResult(low_rank, prediction, None, score, rank, "ok")


def _weights(state: State, values: Array, observed: Mask) -> Faces:
    """ŵ, (faces, R): least squares on the observed entries."""
    basis, shape = state.basis, state.shape
    tubes, rank = shape[1:], basis.shape[-1]

    def forward(weights: Array) -> Array:
        return _compose(basis, _faces(weights.reshape(rank, *tubes)), shape)[observed]

    def adjoint(entries: Array) -> Array:
        tensor = np.zeros(shape)
        tensor[observed] = entries
        projected = np.einsum("fir,fi->fr", basis.conj(), _faces(tensor))
        return _real(projected, tubes).ravel()

    size = (int(observed.sum()), rank * int(np.prod(tubes)))
    operator = LinearOperator(size, matvec=forward, rmatvec=adjoint, dtype=np.float64)
    config = state.config
    near = config.tolerance
    solution = lsqr(operator, values[observed], atol=near, btol=near, iter_lim=config.iterations)[0]
    return _faces(solution.reshape(rank, *tubes))


def _turned(basis: Faces, values: Array, observed: Mask, weights: Faces, length: float | None) -> Faces:
    """Û after a step along the geodesic, every face by its own angle."""
    fitted = np.einsum("fir,fr->fi", basis, weights)
    residual = _faces(np.where(observed, values - _real(fitted, values.shape[1:]), 0.0))
    residual = residual - np.einsum("fir,fr->fi", basis, np.einsum("fir,fi->fr", basis.conj(), residual))
    weight_size = np.linalg.norm(weights, axis=1)[:, None]
    residual_size = np.linalg.norm(residual, axis=1)[:, None]
    angle = np.arctan2(residual_size, weight_size) if length is None else length * residual_size * weight_size
    towards = (np.cos(angle) - 1) * _unit(fitted) + np.sin(angle) * _unit(residual)
    turned: Faces = basis + towards[:, :, None] * _unit(weights).conj()[:, None, :]
    return turned


def _unit(vectors: Faces) -> Faces:
    """Every face's vector at length one; zero stays zero."""
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(size > 0, size, 1.0)


def _compose(basis: Faces, weights: Faces, shape: tuple[int, ...]) -> Array:
    """U ∗ w as a slice."""
    return _real(np.einsum("fir,fr->fi", basis, weights), shape[1:])


def _faces(tensor: Array) -> Faces:
    """Fourier transform along the tubes, (faces, first mode)."""
    return np.fft.fftn(tensor, axes=_tubes(tensor, 1)).reshape(tensor.shape[0], -1).T


def _real(faces: Faces, tubes: tuple[int, ...]) -> Array:
    """The tensor whose transform the faces are, (first mode, *tubes)."""
    tensor = faces.T.reshape(-1, *tubes)
    return np.fft.ifftn(tensor, axes=_tubes(tensor, 1)).real.copy()


def _tubes(tensor: NDArray[Any], first: int) -> tuple[int, ...]:
    return tuple(range(first, tensor.ndim))


_CITATION = "K. Gilman, D. A. Tarzanagh, L. Balzano, IEEE Trans. Signal Process. 70, 2022"
BASELINES = (
    Baseline(
        "toucan",
        "TOUCAN",
        init,
        step,
        Config,
        _CITATION,
        needs_unit_scale=False,
        hindsight=RANK_AND_SCALE,
    ),
)
