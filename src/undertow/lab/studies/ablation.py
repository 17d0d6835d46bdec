"""What a model is without a part of it, beside what it is with it: error, F1, rank, coverage and time, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.lab.criteria.criterion import Criterion
from undertow.lab.studies.entries import Entry
from undertow.lab.studies.table import StudyTable
from undertow.lab.studies.tracker import Record

ERRORS = ("error", "over level", "over fresh")
"""What counts as the error of a row: the first of these numbers that it has."""
TIME = "milliseconds"
SHOWN = {"F1": ".3f", "rank": ".3g", "coverage": ".3f"}
"""Numbers that are shown without the part and with it."""


def table(criteria: Sequence[Criterion], entries: Sequence[Entry], records: Sequence[Record]) -> StudyTable:
    """A line for every replacement and row. The first entry is the model with everything.

    Errors and times are geometric means over seeds of those without the part over those with it, errors with the
    smallest and the largest; other numbers are means without it, and with it in brackets.
    """
    made = StudyTable("Without a part, over with it", ("replaced", "stream", "error ×", *SHOWN, "time ×"))
    given, *others = entries
    good = [one for one in records if not one["reason"]]
    found = {(one["row"], one["seed"], _key(one)): {**one["numbers"], TIME: one[TIME]} for one in good}
    for entry in others:
        for criterion in criteria:
            seeds = [one["seed"] for one in records if one["row"] == criterion.name and _key(one) == _key(given)]
            pairs = [
                (found.get((criterion.name, seed, _key(entry))), found.get((criterion.name, seed, _key(given))))
                for seed in seeds
            ]
            both = [(without, full) for without, full in pairs if without and full]
            error = next((name for name in ERRORS if name in criterion.asked), ERRORS[0])
            changed = ", ".join(
                f"{name}={value}" for name, value in entry.settings.items() if given.settings.get(name) != value
            )
            shown = (_beside(both, number, form) for number, form in SHOWN.items())
            made.rows.append((changed, criterion.title, _over(both, error, True), *shown, _over(both, TIME, False)))
    return made


def _key(one: Entry | Record) -> tuple[str, str]:
    method, settings = (one.method, one.settings) if isinstance(one, Entry) else (one["method"], one["settings"])
    return method, repr(sorted(dict(settings).items()))


def _values(both: Sequence[tuple[Record, Record]], name: str) -> np.ndarray:
    """(seeds, 2), of those that have the number."""
    known = [(one.get(name), other.get(name)) for one, other in both]
    return np.array([pair for pair in known if None not in pair], float).reshape(-1, 2)


def _over(both: Sequence[tuple[Record, Record]], name: str, spread: bool) -> str:
    values = _values(both, name)
    if not (values > 0).all() or not len(values):
        return "–"
    ratios = values[:, 0] / values[:, 1]
    middle = f"{np.exp(np.log(ratios).mean()):.2f}"
    return f"{middle} ({ratios.min():.2f} to {ratios.max():.2f})" if spread and len(ratios) > 1 else middle


def _beside(both: Sequence[tuple[Record, Record]], name: str, form: str) -> str:
    values = _values(both, name)
    return "{0:{2}} ({1:{2}})".format(*values.mean(axis=0), form) if len(values) else "–"
