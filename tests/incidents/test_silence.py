"""Sensors from which nothing comes any more."""

import numpy as np
import pytest
from innovations import clean, watched

from undertow.incidents import Incidents
from undertow.incidents.silence import Silence
from undertow.serialization.container import from_bytes, to_bytes

SEED = 11


def hidden(missing, length, shape=(6, 5)):
    slices, draw = clean(length, shape, SEED), np.random.default_rng(SEED)
    slices[draw.random(slices.shape) < missing] = np.nan
    return slices


def told(changes):
    return [(what, one.kind, one.since, one.until) for _, what, one in changes if what != "updated"]


@pytest.mark.parametrize(("missing", "within"), [(0.0, 20), (0.1, 15), (0.5, 40)])
def test_one_that_stops_is_an_incident_until_it_is_heard_again(missing, within):
    slices = hidden(missing, 220)
    slices[100:180, 2, 3], slices[[99, 180], 2, 3] = np.nan, 0.0
    changes, watch = watched(slices, labels=(list("abcdef"), None), dims=("site", "hour"))
    assert told(changes) == [("opened", "silent", 100, None), ("closed", "silent", 100, 179)]
    assert changes[0][0] < 100 + within
    assert changes[-1][0] == 180
    (found,) = watch.recent
    assert (found.entries, found.count, found.where) == (((2, 3),), 1, "site c, hour 3")
    assert found.sentence == "site c, hour 3: silent from slice 100 to slice 179"
    assert 0.5 < found.probability <= 1


def test_it_says_since_when():
    slices = hidden(0.0, 120, (4,))
    slices[100:, 1] = np.nan
    start = np.datetime64("2026-03-01T00:00", "h")
    _, watch = watched(slices, labels=(list("abcd"),), dims=("sensor",), times=lambda t: start + t)
    assert [one.sentence for one in watch.open] == ["sensor b: silent since 2026-03-05T04:00"]


def test_those_that_stop_together_are_one_incident_and_a_row_is_called_a_row():
    slices = hidden(0.1, 150)
    slices[100:, 2] = np.nan
    slices[100:, 4, 4] = np.nan
    changes, watch = watched(slices)
    assert told(changes) == [("opened", "silent", watch.open[0].since, None)]
    assert (watch.open[0].where, watch.open[0].rows, watch.open[0].count) == ("mode_0 2", ((0, 2),), 6)


def test_a_feed_that_stops_is_the_whole_slice():
    slices = hidden(0.0, 160)
    slices[100:140] = np.nan
    changes, watch = watched(slices)
    assert told(changes) == [("opened", "silent", 100, None), ("closed", "silent", 100, 139)]
    assert watch.recent[0].where == "the whole slice"


def test_it_goes_on_until_the_last_of_them_is_heard():
    slices = hidden(0.0, 200)
    slices[100:140, 1] = np.nan
    slices[140:170, 1, 0] = np.nan
    changes, watch = watched(slices)
    assert told(changes) == [("opened", "silent", 100, None), ("closed", "silent", 100, 169)]
    assert watch.recent[0].count == 5


def test_what_was_wrong_with_it_before_ends_with_it():
    slices = hidden(0.0, 160)
    slices[95:100, 2] += 9.0
    slices[100:150, 2] = np.nan
    changes, _ = watched(slices)
    assert told(changes) == [
        ("opened", "row", 95, None),
        ("opened", "silent", 100, None),
        ("closed", "row", 95, 99),
        ("closed", "silent", 100, 149),
    ]


@pytest.mark.parametrize("missing", [0.05, 0.3, 0.9])
def test_what_is_missing_by_chance_is_no_incident(missing):
    """A thousand slices of thirty entries at one false incident in a thousand slices, for all kinds together."""
    silence, draw, opened = Silence.new(30), np.random.default_rng(SEED), 0
    for _ in range(1000):
        silence.learn(draw.random(30) >= missing)
        opened += int((silence.surprise() > np.log(30 * 1000)).any())
    assert opened <= 1


def test_gaps_of_others_tell_how_long_gaps_are():
    """Long gaps are no news where they are usual, also for an entry that has had none."""
    usual, rare = Silence.new(2), Silence.new(2)
    for t in range(600):
        usual.learn(np.array([True, t % 60 < 30]))
        rare.learn(np.array([True, t % 30 > 0]))
    for _ in range(10):
        usual.learn(np.array([False, True]))
        rare.learn(np.array([False, True]))
    assert usual.surprise()[0] < rare.surprise()[0] - 3


def test_it_is_the_tail_of_the_beta_geometric_law():
    """Of an entry with known gaps: q, then the ratio of beta functions."""
    silence = Silence.new(1)
    for t in range(400):
        silence.learn(np.array([t % 10 >= 3]))  # gaps of three
    begins, ends, further = 39.5 / 281, 39 + 5.0, 2 * 39 + 5.0 * (2 * 39 + 1.5) / 44
    expected = -np.log(begins)
    for lasted in range(4):
        silence.learn(np.array([False]))
        if lasted:
            expected -= np.log((further + lasted - 1) / (further + ends + lasted - 1))
    np.testing.assert_allclose(silence.surprise(), expected, rtol=0.03)  # what is older counts a little less


def test_who_has_never_been_heard_is_not_silent():
    slices = hidden(0.0, 300)
    slices[:, 0, 0] = np.nan
    assert watched(slices)[0] == []


def test_a_false_alarm_is_not_raised_again_while_the_silence_lasts():
    slices = hidden(0.1, 400)
    slices[100:, 0, 0] = np.nan
    changes, watch = watched(slices[:130])
    assert [one.what for one in watch.feedback(1)] == ["closed"]
    assert watched(slices[130:], watch)[0] == []
    assert told(changes) == [("opened", "silent", changes[0][2].since, None)]


def test_rows_whose_labels_are_gone_are_not_waited_for():
    slices = hidden(0.0, 200)
    slices[100:, 2] = np.nan
    _, watch = watched(slices[:130])
    assert [one.kind for one in watch.open] == ["silent"]
    watch.forget(0, [2])
    assert told(watched(slices[130:], watch)[0]) == [("closed", "silent", 100, 129)]


def test_it_goes_on_exactly_from_a_state_and_from_one_of_an_earlier_version():
    slices = hidden(0.2, 160)
    slices[100:, 2] = np.nan
    expected, whole = watched(slices)
    first, watch = watched(slices[:104])
    again = Incidents((6, 5), false_alarms="1/1000")
    again.from_bytes(watch.to_bytes())
    second, again = watched(slices[104:], again)
    assert [one for _, _, one in first + second] == [one for _, _, one in expected]
    assert again.to_bytes() == whole.to_bytes()
    header, arrays = from_bytes(watch.to_bytes(), "of incidents")
    older = Incidents((6, 5), false_alarms="1/1000")
    older.from_bytes(to_bytes(header, {name: one for name, one in arrays.items() if not name.startswith("silence")}))
    assert older.slices == 104
