"""A stream changes its scale only where that makes the whole tracker predict better."""

from types import SimpleNamespace

import numpy as np
import pytest

from undertow.inputs.dense import as_slice
from undertow.tracker import framing
from undertow.tracker.frame import Frame
from undertow.tracker.framing import Review, tried
from undertow.tracker.scales import LINEAR, LOG

LINE, CURVE = Frame(unit=2.0), Frame(unit=2.0, scale=LOG)


@pytest.fixture
def state(monkeypatch):
    """A stream in the linear frame; what is learned anew in a frame has the error that the test says."""
    errors = {}

    def replayed(states):
        return [SimpleNamespace(frame=one.frame, core=SimpleNamespace(error=errors[one.frame])) for one in states]

    monkeypatch.setattr(framing, "_replayed", replayed)
    monkeypatch.setattr(
        framing, "replace", lambda state, frame: SimpleNamespace(frame=frame, recent=state.recent, used=state.used)
    )
    recent = tuple(as_slice(np.full((2, 2), 1.0 + t)) for t in range(3))
    return SimpleNamespace(frame=LINE, recent=recent, used=3), errors


@pytest.mark.parametrize(("linear", "curved", "chosen"), [(-1.0, 0.0, LINEAR), (0.0, 0.1, LOG), (0.0, -1.0, LOG)])
@pytest.mark.parametrize("again", [False, True])
def test_the_scale_in_use_stays_where_it_is_clearly_better(state, linear, curved, chosen, again):
    before, errors = state
    errors |= {LINE: linear, CURVE: curved}
    (after,) = tried([before], [Review((CURVE,), again)])
    assert after.frame.scale == chosen
    assert (after is before) == (chosen == LINEAR and not again)


def test_a_scale_that_has_served_for_long_is_left_for_a_better_one_only(state):
    before, errors = state
    before.used = 40
    for curved, chosen in ((0.1, LINEAR), (-0.1, LOG)):
        errors |= {LINE: 0.0, CURVE: curved}
        assert tried([before], [Review((CURVE,), False)])[0].frame.scale == chosen


def test_another_unit_is_not_compared(state):
    before, errors = state
    errors[Frame(unit=64.0)] = 9.0
    (after,) = tried([before], [Review((Frame(unit=64.0),), False)])
    assert after.frame.unit == 64
