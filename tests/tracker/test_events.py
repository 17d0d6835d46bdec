"""What lasts: runs of flagged entries, slices that are off, dead sensors, rows that are off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.flags import Flags
from undertow.tracker import events
from undertow.tracker.events import BELIEVED_AFTER, DEAD_AFTER, DEAD_FACTOR, Named, named, rows_off

ENTRIES = 10
decide, learned, dead = jax.jit(events.decide), jax.jit(events.learned), jax.jit(events.dead)


class Run:
    """Slices one after another, as a tracker sees them."""

    def __init__(self):
        self.state, self.draw = events.init(ENTRIES), np.random.default_rng(0)

    def slice(self, flagged=(), sides=1, values=None, mask=None):
        """The decisions about a slice in which these entries are flagged."""
        probability = np.zeros(ENTRIES, np.float32)
        probability[list(flagged)] = 1
        mask = np.ones(ENTRIES, bool) if mask is None else mask
        innovation = np.full(ENTRIES, 9.0 * sides, np.float32)
        values = self.draw.normal(size=ENTRIES) if values is None else values
        probability = np.where(mask, probability, 0)
        found = decide(self.state, probability, innovation, mask)
        values = jnp.asarray(values, jnp.float32)
        self.state = learned(self.state, probability, innovation, values, mask, found.slice_off)
        return found


@pytest.mark.slow
def test_a_single_outlier_is_never_accepted():
    run = Run()
    for number in range(12):
        assert not run.slice([3] if number % 2 else []).accept.any()


def test_a_change_is_believed_after_some_slices_on_the_same_side():
    run = Run()
    for number in range(1, BELIEVED_AFTER + 1):
        found = run.slice([3])
        assert np.asarray(found.accept).tolist() == [
            entry == 3 and number == BELIEVED_AFTER for entry in range(ENTRIES)
        ]
    assert not run.slice([3]).accept.any()  # it is counted anew


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


def test_a_clean_observation_interrupts():
    run = Run()
    for _ in range(BELIEVED_AFTER - 1):
        run.slice([3])
    run.slice()
    assert not run.slice([3]).accept.any()


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


def test_one_that_has_rested_before_may_rest_as_long_again():
    longest = 6
    series = ([1.0] * (longest + 1) + [2.0] * (longest + 1)) * 3
    wait = DEAD_FACTOR * (longest + 1)
    said = through([*series, *[1.0] * (wait + 1), 1.0])
    assert not any(said[: len(series) + wait])
    assert said[-1]


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


def test_names_become_flags():
    assert Named().flags() == 0
    nothing = np.zeros(30, bool)
    one, mask, flagged = np.arange(30) == 7, np.ones((6, 5), bool), np.zeros((6, 5), bool)
    found = named(flagged, False, one, nothing, mask)
    assert found.flags() == Flags.LASTING_CHANGE
    assert [int(index[0]) for index in found.changed] == [1, 2]
    found = named(flagged, False, nothing, one, mask)
    assert found.flags() == Flags.DEAD_SENSOR
    flagged[2] = True
    assert named(flagged, False, nothing, nothing, mask).flags() == Flags.ROW_OFF
    assert named(flagged, True, nothing, nothing, mask).flags() == Flags.SLICE_OFF


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
