"""Incidents of a run: what, from when to when, how far off."""

from __future__ import annotations

from undertow.incidents.incident import Incident
from undertow.runs.store.reader import StoredRun
from undertow.view.html import element, heading, joined, table

_MOST = 30


def incidents_of(run: StoredRun) -> list[Incident]:
    """Those that nobody has called a false alarm, oldest first."""
    found = (Incident.from_json(one) for one in run.incidents())
    return [one for one in found if not one.false_alarm]


def the_incidents(run: StoredRun) -> str:
    """A table of the newest, the open ones included."""
    found = incidents_of(run)
    if not found:
        return ""
    rows = [
        (
            one.where or "everything",
            one.kind,
            _moment(one.since_time, one.since),
            "goes on" if one.open else _moment(one.until_time, one.until or 0),
            f"{one.count:,}" if one.count else "–",
            f"{one.std:+.1f}" if one.std else "–",
        )
        for one in found[-_MOST:]
    ]
    aside = f"false ones accepted: {run.dataset.attrs.get('false_alarms', '')}"
    if run.dataset.attrs.get("time_zone"):
        aside += "; times are in UTC"
    if len(found) > _MOST:
        aside += f"; the last {_MOST} of {len(found):,}"
    names = ("where", "what", "from", "to", "entries", "off by, std")
    return joined(
        heading(2, "Incidents", aside),
        element("section", table(names, rows, ["entries", "off by, std"]), class_="scroll"),
    )


def _moment(time: str | float | None, number: int) -> str:
    return f"slice {number}" if time is None else str(time).replace("T", " ")
