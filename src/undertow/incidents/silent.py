"""Sensors from which nothing comes any more, as one incident for all that fell silent together.

How long a sensor is usually silent has been learned: a silence is reported when one as long, of any of them, is as
improbable as the rate of false alarms asks for. Where entries are missing at random with probability q that is q^k.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from undertow.incidents.clock import Moment
from undertow.incidents.finding import significant
from undertow.incidents.grouping import Bools
from undertow.incidents.incident import Change, Incident
from undertow.incidents.naming import Names
from undertow.incidents.ongoing import TOGETHER, Open, name
from undertow.incidents.rate import sure
from undertow.incidents.reading import Floats
from undertow.incidents.register import Register
from undertow.incidents.scores import CANDIDATES, SILENT
from undertow.incidents.silence import Silence


def heard(register: Register, observed: Bools, now: Moment) -> list[Change]:
    """Silences that end, when the last of those that fell silent together is heard again; others go on."""
    changes = []
    for one in [one for one in register.open if one.incident.kind == "silent"]:
        one.members = one.members & ~observed
        if one.members.any():
            one.incident = replace(one.incident, last=now.number, last_time=now.time)
        else:
            changes.append(register.close(one, one.incident))
    return changes


def fell_silent(register: Register, silence: Silence, bars: Floats, level: float, now: Moment) -> list[Change]:
    """What opens, or becomes a larger incident of silent sensors; what else was wrong with these is closed.

    Args:
        register: Of the stream.
        silence: How long entries have been without a value, this slice included.
        bars: What surprises of entries are divided by.
        level: Probability of a false incident that this slice may have.
        now: The slice.
    """
    if not silence.run.any():
        return []
    known = register.members(("silent",))
    surprise = np.where(known, 0.0, silence.surprise() / bars)
    usual = math.log(CANDIDATES * surprise.size / SILENT)
    fresh = surprise > usual - math.log(level)
    if not fresh.any():
        return []
    # Those that are about as long silent may be so for the same reason, and this is known to be no chance.
    began = now.number - silence.run + 1
    first = began[fresh].min()
    together = ~known & (silence.run > 0) & (np.abs(began - first) <= TOGETHER)
    fresh |= significant(np.where(together, surprise, np.nan), at_least=False)
    one = next((one for one in register.open if _same(one, first)), None)
    if one is None:
        since = now.back(now.number - int(began[fresh].min()))
        most = float(surprise.max()) - usual
        one = register.begin("silent", since, now, fresh, most, sure(most, level))
        changes = [Change("opened", _named(one, silence, register.names))]
    else:
        one.members, one.counted = one.members | fresh, one.counted | fresh
        changes = [Change("updated", _named(one, silence, register.names))]
    silent = register.members(("silent",))
    over = [one for one in register.open if one.incident.kind != "silent" and not (one.counted & ~silent).any()]
    return changes + [register.close(one, one.incident) for one in over]


def _same(one: Open, began: float) -> bool:
    return one.incident.kind == "silent" and abs(one.incident.since - began) <= TOGETHER


def _named(one: Open, silence: Silence, names: Names) -> Incident:
    """With where it is in words: by rows of which nobody is heard any more, where there are any."""
    gone, known = one.counted.reshape(names.shape), (silence.heard > 0).reshape(names.shape)
    rows = tuple(
        (mode, index)
        for mode, size in enumerate(names.shape if gone.ndim > 1 else ())
        for index in range(size)
        if (there := np.take(known, index, mode)).sum() > 1 and not (there & ~np.take(gone, index, mode)).any()
    )
    one.incident = replace(one.incident, rows=rows)
    name(one, np.zeros(gone.size), names)
    if known.sum() > 1 and not (known & ~gone).any():
        one.incident = replace(one.incident, rows=(), where="the whole slice")
    return one.incident
