"""Incidents: what opens, lasts and closes, with results that cost nothing."""

import json

import numpy as np
import pytest
from innovations import clean, result, watched
from stubs import StubStatus

from undertow.incidents import Incident, Incidents

SEED = 3


def planted(change, length=120, shape=(6, 5), seed=SEED):
    slices = clean(length, shape, seed)
    change(slices)
    return slices


def only(changes):
    """The incident of changes that are about one alone."""
    assert [what for _, what, _ in changes if what != "updated"] in (["opened"], ["opened", "closed"]), changes
    assert len({one.id for _, _, one in changes}) == 1
    return changes[-1][2]


def test_a_clean_stream_has_none():
    changes, watch = watched(clean(150, seed=SEED))
    assert changes == []
    assert watch.open == watch.recent == ()


def test_a_spike_is_one_entry():
    def change(slices):
        slices[80, 2, 3] = -14.0

    found = only(watched(planted(change), labels=(list("abcdef"), None), dims=("site", "hour"))[0])
    assert (found.kind, found.since, found.until, found.entries, found.count) == ("entry", 80, 80, ((2, 3),), 1)
    assert found.std == found.amount == -14
    assert found.labels == (("c", "3"),)
    assert found.sentence == "site c, hour 3: 14 standard deviations (14) below what was expected at slice 80"
    assert found.probability > 0.9


def test_a_row_that_fails_is_one_incident_with_a_beginning_and_an_end():
    def change(slices):
        slices[70:90, 2] += 9.0

    changes, _ = watched(planted(change))
    found = only(changes)
    assert (found.kind, found.rows, found.since, found.until, found.side) == ("row", ((0, 2),), 70, 89, "above")
    assert changes[0][:2] == (70, "opened")
    assert changes[-1][:2] == (99, "closed")


def test_a_router_is_a_row_and_a_column_and_one_incident():
    def change(slices):
        slices[70:90, 4, :] -= 9.0
        slices[70:90, :, 4] -= 9.0

    names = [f"router-{i}" for i in range(12)]
    changes, _ = watched(planted(change, shape=(12, 12)), labels=(names, names), dims=("origin", "destination"))
    found = only(changes)
    assert (found.kind, found.rows) == ("row", ((0, 4), (1, 4)))
    assert found.where == "origin router-4 and destination router-4"
    assert found.count == 23


def test_a_block():
    def change(slices):
        slices[70:75, 2:5, 7:10] += 12.0

    found = only(watched(planted(change, shape=(12, 12)))[0])
    assert (found.kind, found.count) == ("block", 9)
    assert found.where == "mode_0 2, 3, 4 × mode_1 7, 8, 9"


def test_a_whole_slice():
    def change(slices):
        slices[70] *= 20.0

    found = only(watched(planted(change))[0])
    assert (found.kind, found.since, found.until) == ("slice", 70, 70)


def test_a_slice_that_the_model_calls_wrong_is_an_incident_though_its_innovations_are_small():
    slices = clean(100, seed=SEED)
    watch = Incidents((6, 5))
    for t, u in enumerate(slices):
        given = result(u, slice_off=t == 80)
        if t == 80:
            given.outliers, given.outlier_probability = np.full((6, 5), 30.0), np.ones((6, 5))
        watch.update(given)
    assert [one.kind for one in watch.recent] == ["slice"]


def test_what_stays_a_little_off_is_found_and_dated_back():
    def change(slices):
        slices[80:84, 1, 1] = [5.2, 5.0, 5.3, 5.1]

    found = only(watched(planted(change))[0])
    assert (found.kind, found.entries) == ("entry", ((1, 1),))
    assert 80 <= found.since <= 81


def test_a_change_that_is_believed_closes_its_incident():
    def change(slices):
        slices[80:84, 1, 1] = 11.0

    def means(t):  # the model follows within four slices
        return np.where(np.arange(30).reshape(6, 5) == 6, 11.0 * np.clip((t - 83) / 4, 0, 1), 0.0)

    changes, _ = watched(planted(change), events={83: {"changed": (np.array([1]), np.array([1]))}}, means=means)
    found = only(changes)
    assert (found.kind, found.since, found.until) == ("change", 80, 83)
    assert "changed for good" in found.sentence


def test_what_a_model_has_just_taken_over_is_no_other_incident():
    """A router fails for ten slices; the model believes it after four: neither that nor the return fits immediately."""

    def change(slices):
        slices[80:90, 2], slices[90:92, 2] = 11.0, -11.0

    def means(t):
        return 14.0 * (np.arange(6)[:, None] == 2) * (83 < t < 92)

    changes, _ = watched(planted(change), events={83: {"changed": (np.full(5, 2), np.arange(5))}}, means=means)
    found = only(changes)
    assert (found.kind, found.since, found.until) == ("row", 80, 91)  # and not "changed for good"
    assert changes[-1][0] == 93  # ten slices after it was believed


def test_how_far_it_was_off_is_not_what_was_left_once_the_model_followed():
    def change(slices):
        slices[80:83, 1, 1], slices[83, 1, 1] = 30.0, 31.0

    slices = planted(change)
    watch = Incidents((6, 5))
    for t, u in enumerate(slices[:84]):
        given, values = result(u), u.copy()
        given.mean[1, 1] = 20.0 * (t == 83)  # what is said of the slice after it was learned
        watch.update(given, values=values)
    (found,) = watch.open
    assert found.amount == pytest.approx(30.0)


def test_states_of_earlier_versions_have_no_believed_changes():
    slices = clean(85, seed=SEED)
    slices[80:, 2] = 11.0
    _, watch = watched(slices)
    header, arrays = watch.state()
    assert header["open"][0].pop("believed") == -1
    again = Incidents((6, 5))
    again.restore(header, arrays)
    assert again.to_bytes() == watch.to_bytes()


def test_a_scene_that_changes():
    def change(slices):
        slices[80:83] *= 15.0

    everything = np.nonzero(np.ones((6, 5)))
    slices = planted(change)
    events = {82: {"changed": everything}}
    found = only(watched(slices, events=events, means=lambda t: slices[82] * (t > 82))[0])
    assert (found.kind, found.until) == ("scene", 82)
    found = only(watched(slices, events=events)[0])
    assert (found.kind, found.until) == ("slice", 82)  # it has returned


def test_dead_sensors_are_one_incident_until_they_move():
    def change(slices):
        slices[70:100, [0, 3], 1] = 0.3

    changes, _ = watched(planted(change))
    found = only(changes)
    assert (found.kind, found.since, found.until, found.count) == ("dead", 70, 99, 2)
    assert "repeat one number each" in found.sentence


@pytest.mark.parametrize(("offset", "begins", "expected"), [(0.0, 60, "dead"), (20.0, 60, "slice"), (0.0, 20, "dead")])
def test_a_stream_that_repeats_itself_is_one_incident_and_no_slice_after_it_is_odd(offset, begins, expected):
    """Offset of a constant from what was expected; two slices are judged before the model says that they repeat."""
    slices, length = clean(begins + 110, seed=SEED), 100
    watch, found = Incidents((6, 5), false_alarms="1/1000"), []
    for t, u in enumerate([*slices[:begins], *[slices[begins - 1] + offset] * length, *slices[begins:]]):
        turn = t - begins
        followed = 0 < turn < length and (turn > 1 or not offset)
        given = result(1e-3 * np.sign(u) if followed else u)
        given.status = StubStatus(("REPEATED",) if 2 <= turn < length else ())
        found += [(one.what, one.incident.kind) for one in watch.update(given, values=u)]
    assert [pair for pair in found if pair[0] != "updated"] == [("opened", expected), ("closed", expected)]
    (incident,) = watch.recent
    assert incident.until == begins + length - 1
    assert incident.since in (begins - 1, begins)


@pytest.mark.slow
def test_sensors_that_often_stay_are_not_dead():
    slices = np.round(0.3 * clean(1500, seed=SEED))  # mostly 0
    changes, _ = watched(slices)
    assert [one.kind for _, _, one in changes if one.kind == "dead"] == []


def test_without_values_the_model_says_who_is_dead():
    watch = Incidents((6, 5))
    told = []
    for t, u in enumerate(clean(120, seed=SEED)):
        dead = (np.array([0]), np.array([1])) if 70 <= t < 90 else ()
        told += [(t, one.what, one.incident.kind) for one in watch.update(result(u, dead=dead))]
    assert told == [(70, "opened", "dead"), (90, "closed", "dead")]


def test_what_the_model_has_followed_is_a_lasting_change_though_it_did_not_say_so():
    watch = Incidents((6, 5))
    for t, u in enumerate(clean(120, seed=SEED)):
        given = result(u)
        if t >= 80:  # at 80 and 81 it is off, then the mean has followed
            u[2, 2] += 20.0 * (t < 82)
            given.mean[2, 2] = 20.0 * (t >= 82)
        watch.update(given, values=u + given.mean)
    assert [(one.kind, one.since, one.until) for one in watch.recent] == [("change", 80, 81)]


def test_a_spike_is_no_change_though_the_level_of_the_hour_moves_by_as_much():
    """Ten hours after a spike at night it is as warm as in the spike."""
    watch = Incidents((6, 5))
    for t, u in enumerate(clean(120, seed=SEED)):
        given = result(u)
        given.mean[:] = -10.0 * np.cos(2 * np.pi * (t - 82) / 20)
        u[2, 2] += 15.0 * (t == 82)
        watch.update(given, values=u + given.mean)
    assert [(one.kind, one.since, one.until) for one in watch.recent] == [("entry", 82, 82)]


def test_noise_that_has_grown_is_how_the_stream_is_after_a_while():
    """It would hide everything else for ever."""
    slices = clean(330, shape=(8, 8), seed=SEED)
    slices[70:] *= 1.5
    slices[300:305, 2] -= 15
    changes, watch = watched(slices)
    first = next(one for _, _, one in changes)
    assert first.kind == "slice"
    closed = [one for _, what, one in changes if what == "closed"]
    assert (closed[0].id, closed[0].until < 200) == (first.id, True)
    assert [(one.kind, one.since) for one in closed[1:]] == [("row", 300)]
    assert watch.open == ()


def test_it_does_not_flap():
    def change(slices):
        slices[70:90:2, 2, 2] = 12.0  # every other slice

    found = only(watched(planted(change))[0])
    assert (found.since, found.until) == (70, 88)


def test_missing_entries_neither_close_nor_open():
    def change(slices):
        slices[70:75, 2, 2] = 12.0
        slices[75:78, 2, 2] = np.nan
        slices[76] = np.nan

    changes, watch = watched(planted(change, length=78))
    assert [what for _, what, _ in changes] == ["opened"]
    assert [one.last for one in watch.open] == [74]


def test_what_begins_elsewhere_later_is_another_incident():
    def change(slices):
        slices[60:100, 1] += 10.0
        slices[80, 4, 4] = -15.0

    changes, _ = watched(planted(change))
    assert [one.kind for _, what, one in changes if what == "opened"] == ["row", "entry"]


def test_times_are_shown_and_give_the_rate():
    def change(slices):
        slices[80, 2, 3] = 25.0

    start = np.datetime64("2024-05-01T00:00")
    changes, watch = watched(planted(change), false_alarms="1/day", times=lambda t: start + 5 * t)
    assert only(changes).since_time == "2024-05-01T06:40"
    assert watch._level() == pytest.approx(1 / 288)


def test_a_rate_in_time_needs_times():
    watch = Incidents((6, 5), false_alarms="1/day")
    with pytest.raises(ValueError, match="give times"):
        watch.update(result(clean(1)[0]))
    assert watch.slices == 0
    Incidents((6, 5), false_alarms="1/day", step=60).update(result(clean(1)[0]))


def test_going_on_from_a_state_is_exact():
    def change(slices):
        slices[60:80, 2] += 9.0
        slices[100, 0, 0] = 20.0

    slices = planted(change, length=140)
    expected, whole = watched(slices)
    watch = Incidents((6, 5), false_alarms="1/1000")
    found = []
    for t, u in enumerate(slices):
        if t in (31, 65, 101):
            content = watch.to_bytes()
            watch = Incidents((6, 5), false_alarms="1/1000")
            watch.from_bytes(content)
            assert watch.to_bytes() == content
        found += [(t, one.what, one.incident) for one in watch.update(result(u), None, u)]
    assert found == expected
    assert watch.to_bytes() == whole.to_bytes()


def test_a_state_of_another_shape_is_refused():
    header, arrays = Incidents((6, 5)).state()
    watch = Incidents((7,))
    with pytest.raises(ValueError, match="shape"):
        watch.restore(header, arrays)
    assert watch.slices == 0


def test_a_false_alarm_raises_the_bar_for_its_entries_only():
    def change(slices):
        for t in (60, 80, 100):
            slices[t, 2, 2] = 9.0
        slices[110, 4, 4] = 12.0
        slices[120, 2, 2] = 400.0

    slices = planted(change, length=140)
    watch = Incidents((6, 5))
    opened = []
    for t, u in enumerate(slices):
        opened += [(t, one.incident) for one in watch.update(result(u), None, u) if one.what == "opened"]
        if t == 75:
            told = watch.feedback(opened[0][1].id)
            assert told[0].incident.false_alarm is True
    assert [t for t, _ in opened] == [60, 110, 120]
    assert [(one["id"], one["kind"]) for one in watch.feedbacks] == [(1, "entry")]
    with pytest.raises(KeyError, match="no incident 99"):
        watch.feedback(99)


def test_a_false_alarm_closes_what_is_open_and_can_be_taken_back():
    def change(slices):
        slices[60:, 2] += 9.0

    slices = planted(change, length=70)
    _, watch = watched(slices)
    before = {name: bar.copy() for name, bar in watch._scorer.bars.items()}
    closed = watch.feedback(1)
    assert [(one.what, one.incident.until) for one in closed] == [("closed", 69)]
    assert watch.open == ()
    assert (watch._scorer.bars["row"] > 1).sum() == 1
    watch.feedback(1, false_alarm=False)
    for name, bar in before.items():
        np.testing.assert_allclose(watch._scorer.bars[name], bar)
    assert watch.feedbacks == ()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"shape": ()}, "shape must be"),
        ({"shape": (6, 5), "labels": (["a"], None)}, "must be 6"),
        ({"shape": (6, 5), "labels": (None,)}, "one item for each"),
        ({"shape": (6, 5), "false_alarms": "often"}, "false_alarms must be"),
        ({"shape": (6, 5), "step": -1}, "step must be"),
    ],
)
def test_bad_settings_are_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Incidents(**arguments)


def test_a_result_of_another_shape_changes_nothing():
    watch = Incidents((6, 5))
    with pytest.raises(ValueError, match="one slice of shape"):
        watch.update(result(np.zeros((5, 6))))
    assert watch.slices == 0


def test_json_and_back():
    def change(slices):
        slices[70:90, 2] += 9.0

    found = only(watched(planted(change))[0])
    assert Incident.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7,), (6, 5), (4, 3, 2)])
@pytest.mark.parametrize("tails", [None, 3])
def test_the_rate_is_kept(shape, tails):
    """Twice 900 clean slices with one false incident in 100 asked for."""
    count = sum(watched(clean(900, shape, seed, tails), false_alarms="1/100")[1].count for seed in range(2))
    assert 2 <= count <= 32  # 17.4 are asked for


def test_a_row_that_spoils_the_rest_of_the_slice_stays_a_row():
    """What is predicted for the others suffers from a failing row: they are odd too, but by less."""

    def change(slices):
        slices[80:86] *= 4.0
        slices[80:86, 2] -= 60.0

    found = only(watched(planted(change))[0])
    assert (found.kind, found.rows, found.since, found.until) == ("row", ((0, 2),), 80, 85)


def test_something_that_moves_through_a_picture_is_one_block():
    slices = clean(70, (40, 50), SEED)
    for t in range(50, 60):
        slices[t, 10:20, 3 * (t - 50) : 3 * (t - 50) + 10] += 20.0
    changes, _ = watched(slices)
    found = only(changes)
    assert found.kind == "block"
    assert found.until == 59


def test_a_false_discovery_rate_may_be_asked_for():
    def change(slices):
        for t in range(400, 600, 20):
            slices[t, t // 20 % 6] += 40.0

    _, watch = watched(planted(change, length=620), false_alarms="fdr 10%")
    found = {one.since for one in watch.recent}
    assert found <= set(range(400, 600, 20))
    assert len(found) >= 5
