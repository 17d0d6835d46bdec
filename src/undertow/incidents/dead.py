"""Sensors that have died, as one incident for all that do in the same slice."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from undertow.incidents import ongoing
from undertow.incidents.clock import Moment
from undertow.incidents.grouping import MOST
from undertow.incidents.incident import Change
from undertow.incidents.rate import sure
from undertow.incidents.reading import Floats, Seen
from undertow.incidents.register import Register
from undertow.incidents.scores import CANDIDATES, SILENT
from undertow.incidents.stuck import Stuck


def died(register: Register, seen: Seen, stuck: Stuck, bars: Floats, level: float, now: Moment) -> list[Change]:
    """What opens, or becomes an incident of dead sensors.

    By how long they stay at one number usually; without the values, as the model says.

    Args:
        register: Of the stream.
        seen: The slice.
        stuck: Who repeats one number.
        bars: What surprises of entries are divided by.
        level: Probability of a false incident that this slice may have.
        now: The slice.
    """
    dead, surprise, run = seen.dead, 0.0, 0
    if seen.values is not None:
        unusual = np.where(seen.observed, stuck.surprise() / bars, 0.0)
        usual = math.log(CANDIDATES * unusual.size / (1 - SILENT))
        dead = unusual > usual - math.log(level)
        surprise = float(unusual.max() - usual)
    fresh = dead & ~register.members(("dead", "slice"))
    if not fresh.any():
        return []
    if seen.values is not None:
        run = int(stuck.run[fresh].max())
    changes = []
    for one in register.open:
        if one.incident.kind not in ("dead", "slice") and (one.members & fresh).sum() > MOST * one.counted.sum():
            one.incident = replace(one.incident, kind="dead", rows=(), last=now.number, last_time=now.time)
            one.members = one.members & dead
            one.counted = one.members.copy()
            ongoing.name(one, np.zeros(fresh.size), register.names)
            fresh &= ~one.members
            changes.append(Change("updated", one.incident))
    if fresh.any():
        probability = sure(surprise, level) if run else 1.0
        one = register.begin("dead", now.back(run), now, fresh, surprise, probability)
        ongoing.name(one, np.zeros(fresh.size), register.names)
        changes.append(Change("opened", one.incident))
    return changes
