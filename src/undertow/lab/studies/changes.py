"""Streams that change, Undertow by default: new factors at slice 50, and a rank that goes 3 → 6 → 2.

For each seed: slices until the error is back within 1.5 times what it was before the change, whether the status
reported a change, and the rank one window after each change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.changing import CHANGE_AT, RANKS, SLICES_PER_RANK
from undertow.lab.methods import ALL_METHODS
from undertow.lab.reporter import Reporter
from undertow.lab.scores import error_curves
from undertow.lab.studies.table import StudyTable

BACK = 1.5
LASTING = 3
"""Slices whose median error has to be good to be called back: single ones vary with how large they are."""
WINDOW = 20
"""Slices after a change at which the rank is looked at."""


def changes(seeds: Sequence[int], reporter: Reporter) -> StudyTable:
    """Both streams for every seed."""
    reporter.begin(2 * len(seeds))
    table = StudyTable("Streams that change", ("seed", "back after", "status reported", f"rank (true {RANKS})"))
    for seed in seeds:
        back, reported = new_factors(seed, reporter)
        table.rows.append((str(seed), str(back), str(reported), str(changing_rank(seed, reporter))))
    return table


def new_factors(seed: int, reporter: Reporter) -> tuple[int | None, bool]:
    """Slices until the error is back (None: never), and whether the change was reported; half seen, 2 % outliers."""
    data = DATASETS["new_factors"].case(Condition(0.5, 0.02), seed).data
    reporter.start(f"new factors, seed {seed}", len(data))
    track = ALL_METHODS["undertow"].follow(data, {}, reporter.tick)
    errors = [float("nan") if error is None else error for error in error_curves(data, track)["all_error"]]
    flags = " ".join(track.flags[CHANGE_AT : CHANGE_AT + LASTING])
    reported = any(word in flags for word in ("changed", "lasting_change", "slice_off"))
    before = np.median(errors[CHANGE_AT - 20 : CHANGE_AT])
    after = range(CHANGE_AT, len(data) - LASTING)
    back = (t for t in after if np.median(errors[t : t + LASTING]) <= BACK * before)
    reporter.done()
    return next((t - CHANGE_AT for t in back), None), reported


def changing_rank(seed: int, reporter: Reporter) -> list[int]:
    """The rank reported one window after each change; 30 % seen."""
    data = DATASETS["changing_rank"].case(Condition(0.3), seed).data
    reporter.start(f"changing rank, seed {seed}", len(data))
    track = ALL_METHODS["undertow"].follow(data, {}, reporter.tick)
    reporter.done()
    return [int(rank) for rank in track.rank[WINDOW::SLICES_PER_RANK]]
