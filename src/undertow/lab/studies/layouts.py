"""Which arithmetic is quicker: of all entries of the window, or of the observed ones only.

The same model learns the same slices in both layouts (`noise="shared"`, which both allow). Processor time of a warm
step, the median, which is of one that tries no component; and how far the answers are apart at observed entries, in
standard deviations of the noise.
`engine.capacity.SPARSE_FRACTION` is where the lines cross.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import undertow as ut
from undertow.engine import functional
from undertow.engine.state import State
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.lab.synthetic import drifting

NOISE = 0.1
"""Of the stream, below."""


def stream(shape: tuple[int, ...], slices: int, observed: float) -> list[ut.Entries]:
    """Rank 5 with drifting factors and 2 % outliers, as many entries observed in every slice."""
    values = drifting(shape, 5, slices=slices, noise_std=NOISE, seed=0).values.astype(np.float32)
    rng, count = np.random.default_rng(1), round(observed * values[0].size)
    made = []
    for x in values:
        indices = np.unravel_index(np.sort(rng.choice(x.size, count, replace=False)), shape)
        made.append(ut.Entries(indices, x[indices], shape))
    return made


def steps(state: State, slices: Sequence[ut.Entries]) -> tuple[float, list[np.ndarray]]:
    """Processor seconds of a step once the window is full, and what it says of the observed entries of every slice."""
    times, said = [], []
    for number, x in enumerate(slices):
        begun = time.process_time()
        state, result = functional.step(state, x)
        mean = np.asarray(result.mean)
        if number >= state.config.window:
            times.append(time.process_time() - begun)
        said.append(mean if state.entry_capacity else mean[x.indices])
    return float(np.median(times)), said


def layouts(
    shape: tuple[int, ...], fractions: Sequence[float], max_rank: int, window: int, slices: int, reporter: Reporter
) -> StudyTable:
    """One line for every fraction of observed entries.

    Args:
        shape: Of a slice.
        fractions: Of its entries that are observed.
        max_rank: Of the model.
        window: Its window.
        slices: That are timed, after the window is full.
        reporter: Shows progress.
    """
    config = ut.make_config(max_rank=max_rank, window=window, noise="shared")
    sizes = "×".join(map(str, shape))
    headings = (
        "observed",
        "of a slice",
        "all entries, ms",
        "observed entries, ms",
        "all over observed",
        "apart, noise",
    )
    table = StudyTable(f"{sizes}, window {window}, up to {max_rank} components: processor time of a step", headings)
    reporter.begin(2 * len(fractions))
    for fraction in fractions:
        given = stream(shape, window + slices, fraction)
        count = given[0].values.size
        found = []
        for entries in (None, count):
            found.append(steps(functional.init(config, shape, entries=entries), given))
            reporter.done()
        (whole, first), (few, second) = found
        apart = np.sqrt(np.mean(np.square(np.concatenate(first) - np.concatenate(second)))) / NOISE
        numbers = (f"{count:,}", f"{1e3 * whole:.1f}", f"{1e3 * few:.1f}", f"{whole / few:.2f}", f"{apart:.1e}")
        table.rows.append((f"{fraction:.1%}", *numbers))
    return table
