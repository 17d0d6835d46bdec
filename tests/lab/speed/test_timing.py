import math

import numpy as np

from undertow.lab.baselines import METHODS
from undertow.lab.speed import timing as timings
from undertow.lab.speed.baselines import TimedBaseline
from undertow.lab.speed.slices import Slices
from undertow.lab.speed.subject import Subject
from undertow.lab.speed.timing import sweep_seconds, time_slices, warm_up

SLICES = Slices(np.ones((9, 2, 2)), np.ones((9, 2, 2)))


class Counting(Subject):
    """Knows how many slices it has seen; what it saw is shared by all snapshots."""

    def __init__(self):
        self.seen = 0
        self.log = []

    def feed(self, t):
        self.seen += 1
        self.log.append((t, self.seen))
        return t

    def low_rank(self):
        return np.full((2, 2), float(self.seen))


def test_every_pass_begins_at_the_same_state():
    subject = Counting()
    warm_up(subject, 3)
    timing = time_slices(subject, SLICES, first=3, slices=2, repetitions=4)
    assert subject.seen == 3
    assert subject.log[3:] == [(3, 4), (4, 5)] * 4
    assert (timing.slices, timing.repetitions, timing.iterations) == (2, 4, 3.5)
    assert timing.error == 3.5  # the low rank is 4, then 5; the truth is 1
    assert 0 < timing.seconds < 1


def test_one_slice_is_always_timed():
    timing = time_slices(Counting(), SLICES, first=0, slices=5, repetitions=3, limit=-1.0)
    assert (timing.slices, timing.repetitions) == (1, 1)


def test_what_has_no_low_rank_has_no_error():
    class Silent(Counting):
        def feed(self, t):
            return None

        def low_rank(self):
            return None

    timing = time_slices(Silent(), SLICES, 0, 2, 1)
    assert timing.error is None
    assert timing.iterations is None
    assert math.isfinite(timing.seconds)


def test_a_baseline_warmed_cheaply_answers_as_one_that_was_not(small):
    slices = small.source(small, 6, None)
    cheap, full = (TimedBaseline(METHODS["tensorly_masked_cp"], small, slices) for _ in range(2))
    warm_up(cheap, 5)
    for t in range(5):
        full.feed(t)
    cheap.feed(5)
    full.feed(5)
    np.testing.assert_array_equal(cheap.low_rank(), full.low_rank())


def test_seconds_of_a_sweep_leave_out_what_happens_once_and_slices_with_added_components(monkeypatch):
    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    class Sweeping(Subject):
        """Seven seconds a slice and two for each sweep; adding a component, where there is time, takes a thousand."""

        sweeps = 30

        def pinned(self, sweeps):
            other = self.snapshot()
            other.sweeps = sweeps
            return other

        def feed(self, t):
            added = t == 1 and self.sweeps > timings.FEW
            clock.now += 7 + 2 * self.sweeps + 1000 * added
            return self.sweeps

        def low_rank(self):
            return None

    clock = Clock()
    monkeypatch.setattr(timings, "time", clock)
    assert sweep_seconds(Sweeping(), first=0, slices=3, repetitions=2, limit=math.inf) == 2
    monkeypatch.setattr(Sweeping, "pinned", lambda self, sweeps: self.snapshot())
    assert sweep_seconds(Sweeping(), first=0, slices=3, repetitions=2, limit=math.inf) is None
