"""Why an entry was flagged, or why not: in words and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from undertow.view.html import element, joined
from undertow.view.names import Names
from undertow.view.table import Table, shown


@dataclass(frozen=True)
class Explanation:
    """What a model says about one entry of a slice. ``print(explanation)`` is the story, its fields are the numbers.

    Attributes:
        entry: The entry in words.
        position: Its index.
        value: As it came; None where it was not observed or the slice is not at hand.
        expected: The answer of the model, all it knows of the slice included.
        std: Of an observation around it.
        distance: How far the value was from what had been predicted without it, in standard deviations; None where
            there is none.
        probability: That it is an outlier; flagged from one half on.
        predictors: What every predictor said of the entry without having seen it: predictor, weight, said, off (said
            minus value).
        components: What each component of the CP model adds to the entry: component, adds, share (of variance).
        reasons: Sentences.
    """

    entry: str
    position: tuple[int, ...]
    value: float | None
    expected: float
    std: float
    distance: float | None
    probability: float
    predictors: Table
    components: Table
    reasons: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        """Whether it counts as an outlier."""
        return self.probability > 0.5

    def __str__(self) -> str:
        parts = [f"{self.entry}: {' '.join(self.reasons)}"]
        parts += [str(table) for table in (self.predictors, self.components) if len(table)]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        tables = (element("div", one) for one in (_html(self.predictors), _html(self.components)) if one)
        sentences = (element("p", sentence) for sentence in self.reasons)
        return element("div", element("b", self.entry), joined(sentences), joined(tables))


def explanation(
    *,
    entry: str,
    position: tuple[int, ...],
    value: float | None,
    expected: float,
    std: float,
    distance: float | None,
    probability: float,
    said: dict[str, float],
    weights: dict[str, float],
    components: Table | None = None,
    events: tuple[str, ...] = (),
) -> Explanation:
    """Put into words."""
    rows = sorted(
        (
            (name, weights.get(name, 0.0), predicted, None if value is None else predicted - value)
            for name, predicted in said.items()
        ),
        key=lambda row: -row[1],
    )
    sentences = [_seen(value, expected, std)]
    if value is not None and distance is not None:
        sentences.append(f"That is {_off(distance)} what was predicted without it.")
    if value is not None:
        sentences.append(_verdict(probability))
    if rows and value is not None:
        sentences.append(_who(rows, value))
    sentences += events
    return Explanation(
        entry,
        position,
        value,
        expected,
        std,
        distance,
        probability,
        Table(("predictor", "weight", "said", "off"), rows),
        components if components is not None else Table(("component", "adds", "share"), []),
        tuple(sentences),
    )


def event_sentences(events: Any, position: tuple[int, ...], names: Names) -> tuple[str, ...]:
    """What is wrong beyond the entry, where that concerns it."""
    if events is None:
        return ()
    found = ["The whole slice is off, and nothing was learned from it."] if events.slice_off else []
    rows = [names.row(mode, index) for mode, index in events.rows if position[mode] == index]
    found += [f"Most of {row} is off." for row in rows]
    if _among(position, events.changed):
        found.append("It has been off on the same side for some slices: the change is believed, its level starts anew.")
    if _among(position, events.dead):
        found.append("It gives the same number for ever: the sensor may be dead.")
    return tuple(found)


def _among(position: tuple[int, ...], positions: tuple[Any, ...]) -> bool:
    return bool(len(positions)) and position in set(zip(*(where.tolist() for where in positions), strict=True))


def _seen(value: float | None, expected: float, std: float) -> str:
    if value is None and math.isnan(expected):
        return "Nothing was observed, and nothing is said: its label had not come yet, or was silent for long."
    if value is None:
        return f"Nothing was observed; it should be {shown(expected)} ± {shown(1.96 * std)} (95 %)."
    return f"Observed {shown(value)}; it should be {shown(expected)} ± {shown(1.96 * std)} (95 %)."


def _off(distance: float) -> str:
    return f"{abs(distance):.1f} standard deviations {'above' if distance > 0 else 'below'}"


def _verdict(probability: float) -> str:
    if probability > 0.5:
        return f"It is flagged: an outlier with probability {probability:.2g}, and nothing was learned from it."
    return f"It is not flagged: an outlier with probability {probability:.2g}."


def _who(rows: list[tuple[Any, ...]], value: float) -> str:
    counted = [row for row in rows if row[1] >= 0.01]
    above = sum(row[2] > value for row in counted)
    names = ", ".join(f"{row[0]} ({row[1]:.0%}) said {shown(row[2])}" for row in counted[:3])
    if above in (0, len(counted)) and len(counted) > 1:
        return f"All {len(counted)} predictors that count expected {'more' if above else 'less'}: {names}."
    return f"Of the predictors that count, {names}."


def _html(table: Table) -> str:
    return table._repr_html_() if len(table) else ""
