"""Sparse slices as a subject: a generated stream that is never made whole, and a model that keeps observed entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.config import make_config
from undertow.engine import functional
from undertow.inputs.scaling import Given, Scaling
from undertow.inputs.sparse import Entries
from undertow.lab import metrics
from undertow.lab.recordings.files import Folder
from undertow.lab.speed.formula import sparse_flops
from undertow.lab.speed.model import OneModel
from undertow.lab.speed.stream import Stream
from undertow.lab.speed.subject import Floats, Subject
from undertow.model.step import advance

if TYPE_CHECKING:
    from undertow.lab.speed.case import Case

_NOISE, _OUTLIER = 0.1, 10.0  # over the size of the low rank


@dataclass(frozen=True, eq=False)
class SparseStream(Stream):
    """So many sparse slices; the arrays of whole slices are empty.

    entries  what is shown
    clean    what the low rank is compared with, at the same entries
    """

    entries: tuple[Entries, ...]
    clean: tuple[Floats, ...]

    def error(self, low_rank: NDArray[Any], t: int) -> float:
        """‖low rank − truth‖ / ‖truth‖ at the entries of slice t."""
        return metrics.relative_error(low_rank, self.clean[t])


def scattered(case: Case, slices: int, folder: Folder = None) -> Stream:
    """A fixed low rank, seen at entries drawn anew for every slice, with noise and outliers."""
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(size, case.rank)) for size in case.shape]
    count = max(round(case.observed * math.prod(case.shape)), case.rank)
    shown, clean = [], []
    for _ in range(slices):
        flat = np.unique(rng.integers(math.prod(case.shape), size=count))
        indices = np.unravel_index(flat, case.shape)
        product = rng.normal(1, 0.3, case.rank)
        for factor, index in zip(factors, indices, strict=True):
            product = product * factor[index]
        truth = product.sum(axis=1)
        size = truth.std() or 1.0
        outlying = rng.random(flat.size) < case.outliers
        noise = rng.normal(size=flat.size) * size * np.where(outlying, _OUTLIER, _NOISE)
        shown.append(Entries(indices, truth + noise, case.shape))
        clean.append(truth)
    nothing = np.empty((slices, 0))
    return SparseStream(nothing, nothing, nothing > 0, tuple(shown), tuple(clean))


class SparseModel(OneModel):
    """`functional.step` on sparse slices, of which only observed entries are kept."""

    def __init__(self, case: Case, stream: Stream) -> None:
        assert isinstance(stream, SparseStream)
        config = make_config("fixed", max_rank=case.max_rank, window=case.window, noise="shared", **case.settings)
        self.entries = stream.entries
        self.state = functional.init(config, case.shape, max(piece.values.size for piece in stream.entries))
        self.last: Floats | None = None

    @classmethod
    def of(cls, case: Case, stream: Stream) -> Subject:
        """As a case's `make` wants it."""
        return cls(case, stream)

    def feed(self, t: int) -> int:
        """One step; the results have arrived when it returns."""
        self.state, result = functional.step(self.state, self.entries[t])
        self.last = result.low_rank
        return int(result.iterations)

    def flops(self, iterations: int) -> float:
        """Of the sums over entries."""
        config, entries = self.state.config, self.entries[0].values.size
        return iterations * sparse_flops(self.state.shape, entries, config.window, config.max_rank)

    def memory(self) -> int | None:
        """Arguments, results and temporary arrays of the compiled step."""
        state = self.state
        given, scaling = Given(self.entries[0], state.entries), Scaling.of(state.config, state.unit)
        with functional.scope(state.config):
            step = advance.lower(
                state.core, given.values(scaling), given.mask(), functional.working(state), None, given.entry_index()
            )
            planned = step.compile().memory_analysis()
        if planned is None:  # not every device tells
            return None
        parts = planned.argument_size_in_bytes + planned.output_size_in_bytes + planned.temp_size_in_bytes
        return int(parts - planned.alias_size_in_bytes)
