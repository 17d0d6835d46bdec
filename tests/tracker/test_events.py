"""What lasts: runs of flagged entries, slices that are off, dead sensors, rows that are off."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.flags import Flags
from undertow.tracker import events
from undertow.tracker.events import BELIEVED_AFTER, DEAD_AFTER, FARTHER, KNOWN_AFTER, Ages, Named, named, rows_off

ENTRIES = 10
decide, learned, dead = jax.jit(events.decide), jax.jit(events.learned), jax.jit(events.dead)


class Run:
    """Slices one after another, as a tracker sees them."""

    def __init__(self, after=0, support=100):
        self.state, self.draw = events.init(ENTRIES), np.random.default_rng(0)
        known = jnp.full(ENTRIES, support, jnp.int32)
        self.state = replace(self.state, after=jnp.asarray(after, jnp.int32), support=known)

    def slice(self, flagged=(), sides=1, values=None, mask=None, surprise=0.0, rate=0.0, level=None):
        """The decisions about a slice in which these entries are flagged."""
        probability = np.zeros(ENTRIES, np.float32)
        probability[list(flagged)] = 1
        mask = np.ones(ENTRIES, bool) if mask is None else mask
        innovation = np.full(ENTRIES, 9.0 * sides, np.float32)
        values = self.draw.normal(size=ENTRIES) if values is None else values
        probability = np.where(mask, probability, 0)
        values = jnp.asarray(values, jnp.float32)
        found = decide(self.state, probability, innovation, values, mask, surprise, rate)
        decided = np.where(found.slice_off & mask | found.stuck, 1, np.where(found.back, 0, probability))
        self.state = learned(self.state, decided, innovation, values, mask, found, surprise, rate, level)
        return found


@pytest.mark.slow
def test_a_single_outlier_is_never_accepted():
    run = Run()
    for number in range(12):
        assert not run.slice([3] if number % 2 else []).accept.any()


@pytest.mark.slow
def test_a_change_is_believed_after_some_slices_on_the_same_side():
    run = Run()
    for number in range(1, BELIEVED_AFTER + 1):
        found = run.slice([3])
        assert np.asarray(found.accept).tolist() == [
            entry == 3 and number == BELIEVED_AFTER for entry in range(ENTRIES)
        ]
    assert not run.slice([3]).accept.any()  # it is counted anew


def test_a_level_that_comes_back_is_believed_immediately():
    run, level = Run(), (np.zeros(ENTRIES, np.float32), np.ones(ENTRIES, np.float32))
    surge = np.where(np.arange(ENTRIES) == 3, 9.0, 0.1)
    for _ in range(BELIEVED_AFTER):
        found = run.slice([3], values=surge + run.draw.normal(size=ENTRIES), level=level)
    assert np.asarray(found.accept)[3]
    assert not np.asarray(found.back).any()
    run.slice([], values=surge + run.draw.normal(size=ENTRIES))
    assert not run.slice([3], -1, values=np.full(ENTRIES, 4.5)).accept.any()  # neither here nor there
    found = run.slice([3], -1, values=np.full(ENTRIES, 0.5))
    assert np.flatnonzero(found.back).tolist() == np.flatnonzero(found.accept).tolist() == [3]
    assert int(run.state.support[3]) == 100
    assert not run.slice([3], values=surge + 0.1).accept.any()  # what comes after it must last again


def test_a_level_that_was_hardly_known_does_not_come_back():
    run = Run(support=1)
    level = (np.zeros(ENTRIES, np.float32), np.ones(ENTRIES, np.float32))
    for _ in range(2):
        run.slice([3], values=np.where(np.arange(ENTRIES) == 3, 9.0, 0.1) + run.draw.normal(size=ENTRIES), level=level)
    assert not run.slice([3], -1, values=np.full(ENTRIES, 0.5)).back.any()


@pytest.mark.parametrize("after", [1, 2, 7, 20])
def test_a_change_is_believed_after_as_many_slices_as_were_asked_for(after):
    run = Run(after)
    assert [bool(run.slice([3]).accept[3]) for _ in range(2 * after)] == 2 * [*[False] * (after - 1), True]


def test_a_slice_that_stays_off_is_believed_no_later_than_usual():
    slow, quick, usual = Run(20), Run(2), Run()
    lasting = [[bool(run.slice(range(6)).accept.any()) for _ in range(6)].index(True) for run in (quick, usual, slow)]
    assert lasting[0] < lasting[1] == lasting[2]


def test_repetitions_say_little_about_noise_but_zeros_do():
    run = Run()
    run.slice(values=np.array([0.0, 1.0, 2.0, *np.arange(7.0)]))
    said = events.news(run.state, jnp.array([0.0, 1.0, 2.5, *np.arange(1, 8.0)]))
    assert np.asarray(said[:3]).tolist() == [1.0, np.float32(events.REPEATED), 1.0]


def test_a_stream_that_repeats_nearly_everything_for_long_has_no_dead_sensors():
    run, held = Run(), np.zeros(ENTRIES)
    for number in range(400):
        moving = number % 40 == 0
        held = run.draw.normal(size=ENTRIES) if moving else held
        values = held.copy()
        values[0] = 5.0 if number > 1 else number  # sticks, but not for four times as long as the others do
        run.slice(values=values)
        if number < 150:
            assert not dead(run.state).any()
    assert np.asarray(dead(run.state)).tolist() == [True, *[False] * (ENTRIES - 1)]


def test_a_stream_that_repeats_one_slice_has_not_changed():
    run, frozen = Run(), np.arange(ENTRIES)
    for _ in range(3 * BELIEVED_AFTER):
        found = run.slice(range(ENTRIES), values=frozen)
        assert found.slice_off
        assert not found.accept.any()


def test_the_other_side_begins_anew():
    run = Run()
    for side in (1, 1, 1, -1, -1, -1):
        assert not run.slice([3], side).accept.any()
    assert run.slice([3], -1).accept[3]


def test_what_is_missing_neither_counts_nor_interrupts():
    run = Run()
    for _ in range(BELIEVED_AFTER - 1):
        run.slice([3])
    before = run.state
    without = np.arange(ENTRIES) != 3
    for _ in range(5):
        assert not run.slice([3], mask=without).accept.any()
    assert run.state.run[3] == before.run[3]
    assert run.state.value[3] == before.value[3]
    assert run.slice([3]).accept[3]


def test_a_clean_observation_takes_one_back():
    run = Run()
    for _ in range(BELIEVED_AFTER - 1):
        run.slice([3])
    run.slice()
    assert not run.slice([3]).accept.any()
    assert run.slice([3]).accept[3]


def test_of_the_first_observations_of_an_entry_most_are_believed():
    run, flags = Run(support=0), ([], [3], [3])
    assert [bool(run.slice(flagged).accept[3]) for flagged in flags] == [False, False, True]
    for _ in range(BELIEVED_AFTER):
        run.slice()
    assert run.state.support[3] == BELIEVED_AFTER + 2  # with the two that were believed
    assert [bool(run.slice([3]).accept[3]) for _ in range(BELIEVED_AFTER)] == [*[False] * (BELIEVED_AFTER - 1), True]


def test_what_was_asked_for_is_not_shortened_at_the_beginning():
    run = Run(after=6, support=0)
    assert [bool(run.slice([3]).accept[3]) for _ in range(6)] == [*[False] * 5, True]


def test_an_outlier_among_those_of_a_change_is_not_the_new_level():
    run = Run()
    for _ in range(BELIEVED_AFTER - 1):
        run.slice([3])
    assert not run.slice([3], sides=10).accept.any()
    assert run.slice([3]).accept[3]


def test_many_outliers_of_an_entry_that_is_mostly_right_are_no_change():
    run, rng = Run(), np.random.default_rng(3)
    assert not any(run.slice([3] if rng.random() < 0.2 else [], rate=0.2).accept.any() for _ in range(300))


def test_how_often_an_entry_is_flagged_is_known_of_what_was_observed():
    run = Run()
    for number in range(60):
        run.slice([3, 5] if number % 2 else [5], mask=np.arange(ENTRIES) != 7, sides=1 if number % 2 else -1)
    share = np.asarray(run.state.flagged_share)
    assert share[5] > 0.9
    assert 0.4 < share[3] < 0.6
    assert (share[[0, 7]] == 0).all()


def test_a_slice_is_off_where_most_is_flagged_and_not_for_ever():
    run = Run()
    most = range(6)
    for _ in range(2):
        found = run.slice(most)
        assert found.slice_off
        assert not found.accept.any()
    found = run.slice(most)
    assert not found.slice_off
    assert found.accept[:6].all()
    assert not found.accept[6:].any()
    assert run.slice(most).slice_off  # counted anew


def test_half_is_not_most_and_few_entries_say_nothing():
    assert not Run().slice(range(5)).slice_off
    assert not Run().slice(range(3), mask=np.arange(ENTRIES) < 3).slice_off
    assert Run().slice(range(3), mask=np.arange(ENTRIES) < 4).slice_off


def test_an_empty_slice_changes_nothing():
    run = Run()
    run.slice(range(6))
    before = run.state
    found = run.slice(mask=np.zeros(ENTRIES, bool))
    assert not found.slice_off
    for name, part in vars(before).items():
        if name in ("flagged_for", "repeated_for"):  # they count slices of any kind
            part = np.where(part, part + 1, 0)
        np.testing.assert_array_equal(getattr(run.state, name), part)


def through(series):
    """Whether entry 0 is dead after each of these values; the others vary."""
    run, said, rng = Run(), [], np.random.default_rng(0)
    for value in series:
        run.slice(values=np.append(value, rng.normal(size=ENTRIES - 1)))
        said.append(bool(dead(run.state)[0]))
        assert not dead(run.state)[1:].any()
    return said


def test_a_sensor_that_sticks_is_dead():
    said = through([1.0, 2.0, 3.0] + [4.0] * (DEAD_AFTER + 3))
    assert not any(said[: 3 + DEAD_AFTER])
    assert all(said[3 + DEAD_AFTER :])


def test_a_dead_sensor_that_moves_again_is_alive():
    assert not through([1.0, 2.0] + [4.0] * (DEAD_AFTER + 3) + [5.0])[-1]


def test_one_that_often_rests_may_rest_longer():
    series = ([1.0] * 7 + [2.0] * 7) * 6
    said = through([*series, *[1.0] * 300])
    assert not any(said[: len(series) + 30])
    assert said[-1]


def test_counts_that_are_mostly_0_are_not_dead():
    run, rng = Run(), np.random.default_rng(1)
    for _ in range(150):
        run.slice(values=rng.poisson(0.3, ENTRIES).astype(float))
        assert not dead(run.state).any()


def moving(run, slices=KNOWN_AFTER + 2, surprise=0.0):
    for _ in range(slices):
        run.slice(surprise=surprise)


def test_a_number_that_is_off_and_repeats_itself_is_stuck_until_it_moves():
    run = Run()
    moving(run)
    stuck = lambda: np.where(np.arange(ENTRIES) == 3, 0.0, run.draw.normal(size=ENTRIES))  # noqa: E731
    assert not run.slice([3], values=stuck()).stuck.any()
    unseen = np.arange(ENTRIES) != 3
    for number in range(20):  # also where it is no longer flagged, and not always seen
        found = run.slice([3] if number < 2 else [], values=stuck(), mask=unseen if number == 5 else None)
        assert np.asarray(found.stuck).tolist() == [entry == 3 and number not in (0, 5) for entry in range(ENTRIES)]
        assert not found.accept.any()
    assert int(run.state.flagged_for[3]) == 21
    assert dead(run.state)[3]
    assert not run.slice().stuck.any()


def test_a_number_that_repeats_itself_but_was_never_off_is_not_stuck():
    run = Run()
    moving(run)
    for _ in range(6):
        assert not run.slice(values=np.where(np.arange(ENTRIES) == 3, 0.0, run.draw.normal(size=ENTRIES))).stuck.any()


@pytest.mark.slow
def test_a_slice_far_beyond_all_before_is_off():
    run, rng = Run(), np.random.default_rng(2)
    for surprise in rng.uniform(-1, 1, 40):
        assert not run.slice(surprise=surprise).slice_off
    record = float(run.state.record)
    assert 0.5 < record <= 1
    assert not run.slice(surprise=record + 0.9 * FARTHER).slice_off
    run.state = run.state.__class__(**{**vars(run.state), "record": jnp.float32(record)})
    assert run.slice(surprise=record + 1.1 * FARTHER).slice_off
    assert float(run.state.record) == pytest.approx(record)  # it sets no record


def test_where_outliers_are_many_a_change_takes_longer():
    run = Run()
    taken = next(number for number in range(1, 30) if run.slice([3], rate=0.2).accept[3])
    odds = 0.2 / 0.8  # of flags that add up although most observations take one back
    assert odds**taken * ENTRIES <= events.CHANCE < odds ** (taken - 1) * ENTRIES


def test_one_that_never_moved_is_not_dead():
    """Sensors of nothing, say between places without traffic: "though they did not before" is missing."""
    assert not any(through([0.0] * 40))


def test_rows_and_columns_that_are_off_are_named():
    flagged, observed = np.zeros((6, 5), bool), np.ones((6, 5), bool)
    flagged[2] = True
    assert rows_off(flagged, observed) == ((0, 2),)
    flagged[2, :2] = False
    assert rows_off(flagged, observed) == ((0, 2),)
    flagged[:, 4] = True
    flagged[2] = False
    assert rows_off(flagged, observed) == ((1, 4),)


def test_rows_with_few_entries_whole_slices_and_vectors_have_no_rows_off():
    observed = np.ones((6, 5), bool)
    assert rows_off(observed, observed) == ()
    assert rows_off(np.zeros((6, 5), bool), observed) == ()
    few = np.zeros((6, 5), bool)
    few[2, :3] = True
    assert rows_off(few, few | (np.arange(6) == 0)[:, None]) == ()
    assert rows_off(np.arange(8) == 3, np.ones(8, bool)) == ()


def test_rows_of_three_modes():
    flagged = np.zeros((4, 3, 5), bool)
    flagged[:, 1] = True
    assert rows_off(flagged, np.ones((4, 3, 5), bool)) == ((1, 1),)


def found_in(flagged=None, off=False, changed=None, dead=None, ages=(1, 1, 0)):
    flagged = np.zeros((6, 5), bool) if flagged is None else flagged
    nothing = np.zeros(30, bool)
    lasting = Ages(np.full(30, ages[0]), np.full(30, ages[1]), np.int32(ages[2]))
    given = (nothing if one is None else one for one in (changed, dead))
    return named(flagged, off, *given, np.ones((6, 5), bool), lasting, 20)


def test_names_become_flags():
    assert Named().flags() == 0
    one, row = np.arange(30) == 7, np.zeros((6, 5), bool)
    row[2] = True
    found = found_in(changed=one)
    assert found.flags() == Flags.LASTING_CHANGE
    assert [int(index[0]) for index in found.changed] == [1, 2]
    assert found_in(dead=one).flags() == Flags.DEAD_SENSOR
    assert found_in(row).flags() == Flags.ROW_OFF
    assert found_in(row, off=True).flags() == Flags.SLICE_OFF


def test_what_is_named_has_its_beginning():
    one, row = np.arange(30) == 7, np.zeros((6, 5), bool)
    row[2] = True
    found = found_in(row, changed=one, dead=one, ages=(4, 12, 0))
    assert found.rows_since == (17,)
    assert found.changed_since.tolist() == [17]
    assert found.dead_since.tolist() == [8]  # the first of 13 equal numbers
    assert found.slice_off_since == -1
    assert found_in(off=True, ages=(1, 1, 2)).slice_off_since == 19


@pytest.mark.parametrize("order", [np.arange(ENTRIES)[::-1], np.random.default_rng(3).permutation(ENTRIES)])
def test_the_order_of_entries_does_not_matter(order):
    rng = np.random.default_rng(7)
    one, other = Run(), Run()
    for _ in range(12):
        flagged, values = np.flatnonzero(rng.random(ENTRIES) < 0.4), rng.integers(0, 2, ENTRIES).astype(float)
        there = np.flatnonzero(np.isin(order, flagged))
        np.testing.assert_array_equal(
            other.slice(there, values=values[order]).accept, one.slice(flagged, values=values).accept[order]
        )
        np.testing.assert_array_equal(dead(other.state), dead(one.state)[order])


def test_a_row_that_is_far_off_is_no_slice_that_is_off():
    run = Run()
    moving(run)
    squares = np.ones(ENTRIES, np.float32)
    squares[:2] = 1e8
    everything = np.ones(ENTRIES, bool)
    assert not run.slice(surprise=float(events.distance(run.state, squares, everything))).slice_off
    squares[:6] = 1e8
    assert run.slice(surprise=float(events.distance(run.state, squares, everything))).slice_off


def test_after_slices_of_nothing_but_zeros_small_changes_are_no_surprise():
    run = Run()
    moving(run, surprise=-13.0)
    assert not run.slice(surprise=-0.5).slice_off
    assert run.slice(surprise=1.5).slice_off


@pytest.mark.slow
def test_counts_go_further_back_than_what_was_learned_anew():
    old, new = Run(), Run()
    values = np.arange(ENTRIES, dtype=float)
    for _ in range(10):
        old.slice(flagged=[2, 3], values=values)
    for _ in range(4):
        new.slice(flagged=[2], values=2 * values)  # the same slices on another scale
    found = events.further_back(new.state, old.state)
    assert found.repeats[0] == 9
    assert found.repeated_for[0] == 9
    assert found.flagged_for[2] == 10  # since then
    assert found.flagged_for[3] == 0  # no longer
    np.testing.assert_array_equal(found.value, 2 * values)


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_the_median_of_counts_is_that_of_sorted_ones(size):
    rng = np.random.default_rng(size)
    for most in (1, 3, 1000, 2**31 - 1):
        counts = rng.integers(0, most, size, dtype=np.int32)
        for among in (np.ones(size, bool), rng.random(size) < 0.5):
            some = np.sort(counts[among])
            expected = some[(some.size + 1) // 2 - 1] if some.size else 0
            assert int(events._median(jnp.asarray(counts), jnp.asarray(among))) == expected
