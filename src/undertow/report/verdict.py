"""The verdict on a run, before anything else: healthy, changed or broken, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from undertow.report.incidents import incidents_of
from undertow.runs.store.reader import StoredRun
from undertow.view.html import Html, element

BROKEN_RATE = 0.3
"""Fraction of flagged observations from which on outliers are no longer exceptions."""
BUSY_RATE = 0.05
"""Fraction from which on a stream is not calm."""
RECENT = 0.1
"""The last part of a stream, at least ten slices, that says how it is now."""
_WARM_UP, _MOST_NAMED = 20, 3

CHANGES = {
    "LASTING_CHANGE": "had entries that changed for good",
    "CHANGED": "had another scene than before",
    "RESTARTED": "had data of another size than before",
    "SLICE_OFF": "were wrong as a whole",
    "ROW_OFF": "had a row that was wrong as a whole",
    "DEAD_SENSOR": "had a sensor that repeats one number",
}
"""Statuses that are worth a look, in words about slices."""


@dataclass(frozen=True)
class Verdict:
    """One word and the reasons for it."""

    word: str
    reasons: tuple[str, ...]

    def html(self) -> Html:
        """The first card of the page."""
        sentences = (element("p", reason) for reason in self.reasons)
        return element(
            "section", element("b", self.word.capitalize()), element("div", sentences), class_=f"verdict {self.word}"
        )


def verdict(run: StoredRun) -> Verdict:
    """Healthy, changed or broken.

    Broken: outliers are no exceptions (`BROKEN_RATE` of the observations, now or throughout), nothing arrives any
    more, or most of the latest slices are wrong as a whole. Changed: an incident goes on, something is wrong beyond
    single entries, or more is flagged than in a calm stream. The first slices, from which the model learns, do not
    count.
    """
    start = min(_WARM_UP, run.length // 10)
    rates, observed = (run.per_slice(name)[start:] for name in ("outlier_rate", "observed"))
    statuses = [str(text).split() for text in run.per_slice("status")[start:]]
    recent = min(len(rates), max(10, round(RECENT * len(rates))))
    rate, now = _mean(rates, observed), _mean(rates[-recent:], observed[-recent:])
    counts = Counter(code for codes in statuses for code in set(codes))
    off = sum("SLICE_OFF" in codes or "NOT_FINITE" in codes for codes in statuses[-recent:])
    broken = []
    if now >= BROKEN_RATE:
        broken.append(
            f"{now:.0%} of the observations in the last {recent} slices are flagged: that is not an exception."
        )
    elif rate >= BROKEN_RATE:
        broken.append(f"{rate:.0%} of all observations are flagged: that is not an exception.")
    if not observed[-recent:].any():
        broken.append(f"Nothing was observed in the last {recent} slices.")
    if 2 * off > recent:
        broken.append(f"{off} of the last {recent} slices are wrong as a whole or could not be computed.")
    changed = [
        f"{count:,} of {len(rates):,} slices {CHANGES[code]}."
        for code, count in counts.most_common()
        if code in CHANGES
    ]
    if BUSY_RATE <= rate < BROKEN_RATE:
        changed.append(f"{rate:.1%} of all observations are flagged, more than in a calm stream.")
    found = incidents_of(run)
    lasting = [one for one in found if one.open]
    closed = len(found) - len(lasting)
    in_utc = bool(run.dataset.attrs.get("time_zone"))
    changed += [f"Goes on: {one.said(in_utc)}." for one in lasting[:_MOST_NAMED]]
    if len(lasting) > _MOST_NAMED:
        more = len(lasting) - _MOST_NAMED
        changed.append(f"{more} more {'incident goes' if more == 1 else 'incidents go'} on.")
    over = [f"{closed} {'incident is' if closed == 1 else 'incidents are'} over."] if closed else []
    calm = f"{rate:.2%} of the observations are flagged, {now:.2%} lately; {_filled(observed)}."
    if broken:
        return Verdict("broken", (*broken, *changed, *over))
    if changed:
        return Verdict("changed", (*changed, *over, calm))
    return Verdict("healthy", (*over, calm))


def _mean(rates: np.ndarray, observed: np.ndarray) -> float:
    return float(np.average(rates, weights=observed)) if observed.sum() > 0 else 0.0


def _filled(observed: np.ndarray) -> str:
    missing = 1 - float(observed.mean())
    return "nothing was missing" if missing == 0 else f"{missing:.1%} of the entries were missing and are filled in"
