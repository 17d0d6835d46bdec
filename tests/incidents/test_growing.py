"""Incidents in slices that get further rows."""

from types import SimpleNamespace

import numpy as np

from undertow.incidents import Incidents
from undertow.incidents.growing import grown


def found(grows):
    """What changes in 120 slices, row 2 off for ten of them; further rows and columns are observed by nobody."""
    watch, draw, told = Incidents((6, 5), false_alarms="1/1000"), np.random.default_rng(0), []
    for t in range(120):
        u = draw.normal(size=(6, 5))
        u[2] += 8 if 80 <= t < 90 else 0
        if t in grows:
            watch = grown(watch, grows[t])
        wide = np.full(watch.shape, np.nan)
        wide[:6, :5] = u
        none = np.zeros(watch.shape)
        result = SimpleNamespace(
            mean=none, std=1 + none, innovations=wide, outliers=np.nan_to_num(wide), outlier_probability=none
        )
        told += [(one.what, one.incident) for one in watch.update(result, values=wide)]
    return [(what, one.kind, one.rows, one.since, one.until, one.count, one.entries) for what, one in told]


def test_they_go_on_before_and_while_one_is_open():
    expected = found({})
    assert [one[0] for one in expected] == ["opened", "closed"]
    assert found({50: (8, 5), 85: (8, 6)}) == expected
