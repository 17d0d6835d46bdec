"""What later slices add: error of `undertow.clean` on hidden entries with and without `smooth`.

Half of what was recorded is hidden, at random. Error: mean over the slices from the twentieth on of ‖X − X̂‖ / ‖X‖ on
hidden entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.lab.names import pick
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.studies.forecast import ROWS
from undertow.lab.studies.table import StudyTable
from undertow.runs.cleaning import clean

HIDDEN = 0.5
BURN_IN = 20
"""Slices that are not scored."""


def smoothing(
    names: Sequence[str] | None, slices: int, seed: int, reporter: Reporter, folder: Folder = None
) -> StudyTable:
    """A row for each recording; those whose file is missing are left out."""
    table = StudyTable(f"Half hidden, mask {seed}", ("recording", "as it came", "smooth", "less by"))
    wanted = pick("recording", names, ROWS)
    reporter.begin(2 * len(wanted))
    for row in wanted:
        try:
            values = row.load(folder).values[:slices].astype(np.float64)
        except FileNotFoundError as missing:
            reporter.say(str(missing))
            continue
        hidden = (np.random.default_rng(seed).random(values.shape) < HIDDEN) & ~np.isnan(values)
        given = np.where(hidden, np.nan, values)
        errors = []
        for smooth in (False, True):
            reporter.start(f"{row.name}{', smooth' * smooth}", len(values) * (1 + smooth))
            made = clean(given, smooth=smooth, progress=lambda done, total: reporter.tick())
            errors.append(_error(np.asarray(made["mean"]), values, hidden))
            reporter.done()
        table.rows.append((row.name, *(f"{one:.3f}" for one in errors), f"{1 - errors[1] / errors[0]:.0%}"))
    return table


def _error(mean: np.ndarray, values: np.ndarray, hidden: np.ndarray) -> float:
    scored = []
    for said, truth, where in list(zip(mean, values, hidden, strict=True))[BURN_IN:]:
        size = np.linalg.norm(truth[where])
        if size > 0:
            scored.append(np.linalg.norm(said[where] - truth[where]) / size)
    return float(np.mean(scored))
