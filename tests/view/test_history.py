"""What a model remembers for its pictures: bounded, and of one stream."""

import json
from types import SimpleNamespace

import numpy as np

from undertow.view import history
from undertow.view.history import History


def output(frame=1, rank=1, flagged=0.0):
    return SimpleNamespace(
        frame=frame,
        noted=lambda: lambda: {"rank": rank, "noise": 2.0, "flagged": flagged, "covered": 0.5, "weights": (0.25, 0.75)},
    )


def test_it_is_bounded():
    kept = History()
    for seen in range(1, history.MOST + 50):
        kept.add(seen, output(), [np.array([True])])
    assert len(kept.moments()) <= history.MOST + 1
    assert kept.moments()[-1].index == history.MOST + 48


def test_the_numbers_of_a_slice_are_kept():
    kept = History()
    kept.add(1, output(flagged=0.25), [np.array([True])])
    (moment,) = kept.moments()
    assert (moment.flagged, moment.covered, moment.weights) == (0.25, 0.5, (0.25, 0.75))


def test_another_stream_starts_anew():
    kept = History()
    for seen in (1, 2, 3, 1):
        kept.add(seen, output(), [np.array([True])])
    assert [moment.index for moment in kept.moments()] == [0]


def test_components_are_known_since_they_began():
    kept = History()
    kept.add(1, output(), [np.array([True, False])])
    kept.add(2, output(), [np.array([True, True])])
    kept.add(3, output(), [np.array([False, True])])
    assert kept.since(0).tolist() == [-1, 1]
    kept.add(4, output(), [np.array([True, False, False, True])])  # more slots: those in use have moved to the front
    assert kept.since(0).tolist() == [1, -1, -1, 3]
    kept.add(5, output(frame=2), [np.array([True, False, False, False])])  # learned anew
    assert kept.since(0)[0] == 4


def test_since_when_is_saved():
    kept, other = History(), History()
    kept.add(1, output(), [np.array([True, False])])
    kept.add(2, output(), [np.array([True, True])])
    assert kept.saved(3) is None  # a slice has come that was not looked at
    saved = json.loads(json.dumps(kept.saved(2)))
    other.go_on(saved, 1)
    assert other.newest is None
    assert other.moments()[-1] == kept.moments()[-1]
    assert other.saved(2) == kept.saved(2)
    for one in (kept, other):
        one.add(3, output(), [np.array([True, True, True])])
    assert other.since(0).tolist() == kept.since(0).tolist() == [0, 1, 2]


def test_of_a_loaded_model_it_is_not_known():
    kept = History()
    kept.add(40, output(), [np.array([True])])
    assert kept.since(0).tolist() == [-1]
