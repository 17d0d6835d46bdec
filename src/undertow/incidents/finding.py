"""What a slice that is known to hold something holds: which entries, and how they belong together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.grouping import FEWEST, MOST, Bools, Group, Rows, group, is_block, within
from undertow.incidents.reading import Floats, Seen
from undertow.incidents.scores import LASTING, Scorer, Scores

UNUSUAL = 2.0
"""Surprise from which on an entry counts as unusual: one in seven does in a clean slice."""
SHARE = 0.01
"""False-discovery rate among the entries of a slice that is known to hold something."""
STRONG = 0.4
"""Of the largest innovations (their 95 % quantile): what is as far off is what the others suffer from."""
NEARLY_ALL = 0.8
"""Of a row or a block that explains a slice; and of what it should explain."""


def find(scorer: Scorer, seen: Seen, scores: Scores, alarmed: Bools) -> Group | None:
    """The entries that are off, as one group.

    Args:
        scorer: Of the stream.
        seen: The slice.
        scores: Of the slice.
        alarmed: Families that say that there is something.
    """
    entry, lasting, row, whole = (bool(one) for one in alarmed)
    off = np.zeros(scores.free.size, bool)
    if entry or row or whole:
        off |= significant(np.where(scores.free, scores.entry, np.nan), at_least=entry)
    if lasting:
        off |= significant(scores.lasting, at_least=True)
    rows: Rows = ()
    if entry or row:
        rows = scorer.rows_at(np.flatnonzero(significant(scores.row, at_least=row)))
    likely = scores.free & (scores.entry > UNUSUAL)
    many = seen.off_fraction > MOST or likely.sum() > MOST * scores.free.sum()
    shaped = [array.reshape(scorer.shape) for array in (off, likely, scores.free)]
    if whole and many and (few := _concentrated(seen, scores, scorer.shape)) is not None:
        return few
    found = group(shaped[0], shaped[1], shaped[2], rows, whole and (many or not off.any()))
    if found is None and row:  # a row of which each entry is a little off
        best = scorer.rows_at(np.array([int(np.nanargmax(scores.row))]))
        inside = within(shaped[0], best) & shaped[2]
        return Group("row", best, inside & (shaped[1] | (scores.entry.reshape(scorer.shape) > 1)))
    return found


def earlier(scorer: Scorer, scores: Scores, found: Group) -> int:
    """How many slices ago entries that stay off began to be so, by the one that is off most."""
    inside = found.entries.ravel() & scores.free
    worst = int(np.argmax(np.where(inside, np.nan_to_num(scores.lasting), -1)))
    past = scorer.recent[1:, worst]
    same = np.sign(past) == np.sign(past[-1])
    run = LASTING - 1 if same.all() else int(np.argmin(same[::-1]))
    return run if inside[worst] and (np.abs(past[::-1][:run]) > 1).all() else 0


def significant(surprise: Floats, at_least: bool) -> Bools:
    """Benjamini and Hochberg: which are off, given that something is; the largest if ``at_least`` one must be."""
    known = ~np.isnan(surprise)
    values = np.where(known, surprise, -np.inf)
    order = np.argsort(-values, kind="stable")
    number = int(known.sum())
    limits = -np.log(SHARE * np.arange(1, values.size + 1) / max(number, 1))
    passing = np.flatnonzero(values[order] >= limits)
    found = np.zeros(values.size, bool)
    found[order[: (passing[-1] + 1 if passing.size else 0)]] = True
    if at_least and number:
        found[order[0]] = True
    return found


def _concentrated(seen: Seen, scores: Scores, shape: tuple[int, ...]) -> Group | None:
    """Rows or a block that are much farther off than the rest, where most of a slice is.

    A failing row spoils what is predicted for the others. Then they look odd too, but by less.
    """
    size = np.where(scores.free, np.abs(np.nan_to_num(seen.innovation)), 0.0)
    strong = (scores.free & (size > STRONG * np.quantile(size[scores.free], 0.95))).reshape(shape)
    observed = scores.free.reshape(shape)
    rows: list[tuple[int, int]] = []
    for mode in range(len(shape)) if len(shape) > 1 else ():
        others = tuple(axis for axis in range(len(shape)) if axis != mode)
        bad, there = _counts(strong, others), _counts(observed, others)
        rows += [(mode, int(i)) for i in np.flatnonzero((there >= FEWEST) & (bad > NEARLY_ALL * there))]
    inside = within(observed, tuple(rows)) & observed
    if rows and inside.sum() <= MOST * observed.sum() and (strong & inside).sum() > NEARLY_ALL * strong.sum():
        return Group("row", tuple(rows), strong & inside)
    few = strong.sum() <= MOST * MOST * observed.sum()
    return Group("block", (), strong) if few and is_block(strong, observed, NEARLY_ALL) else None


def _counts(where: Bools, axes: tuple[int, ...]) -> NDArray[np.int64]:
    return np.asarray(where.sum(axis=axes), np.int64)
