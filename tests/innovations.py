"""Results that cost nothing: innovations as they are drawn."""

from types import SimpleNamespace

import numpy as np
from stubs import StubModel, StubStatus, load_stub

from undertow.incidents import Incidents


def result(u, mean=0.0, **events):
    """Of a slice whose innovations are u, in units of one standard deviation, around this mean."""
    seen = ~np.isnan(u)
    return SimpleNamespace(
        mean=np.broadcast_to(np.float64(mean), u.shape).copy(),
        std=np.ones(u.shape),
        innovations=u,
        outliers=np.where(seen & (np.abs(u) > 4), u, 0.0),
        outlier_probability=np.where(seen & (np.abs(u) > 4), 1.0, 0.0),
        events=SimpleNamespace(**{"slice_off": False, "rows": (), "changed": (), "dead": (), **events}),
    )


def clean(length, shape=(6, 5), seed=0, tails=None):
    """Slices of innovations as they should be."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=(length, *shape)) if tails is None else draw.standard_t(tails, (length, *shape))


def watched(slices, watch=None, events=None, times=None, means=lambda t: 0.0, **settings):
    """All changes, as (slice, what, incident), and the watch."""
    watch = watch or Incidents(slices[0].shape, **{"false_alarms": "1/1000", **settings})
    changes = []
    for t, u in enumerate(slices):
        told = (events or {}).get(t, {})
        time = None if times is None else times(t)
        changes += [
            (t, one.what, one.incident) for one in watch.update(result(u, means(t), **told), time, u + means(t))
        ]
    return changes, watch


class Drawn(StubModel):
    """Innovations from a seed, with a row that fails and a spike."""

    def update(self, x):
        made = super().update(np.nan_to_num(x))
        t = self.steps - 1
        u = np.random.default_rng(t).normal(size=x.shape)
        if 60 <= t < 70:
            u[1] -= 15.0
        if t in (85, 99):
            u[2, 3] = 30.0
        given = result(u)
        known = {"mean": np.zeros(x.shape), "status": StubStatus(()), "weights": {}}
        return SimpleNamespace(**{**vars(made), **vars(given), **known})


def load_drawn(content):
    """What its `to_bytes` gave."""
    stub, model = load_stub(content), Drawn()
    model.mean, model.steps = stub.mean, stub.steps
    return model
