"""Events in words."""

import numpy as np
import pytest
from stubs import Named, StubStream

from undertow.runs.options import RunOptions
from undertow.runs.store.events import Chronicle, Event, in_words
from undertow.runs.store.times import Times


@pytest.fixture
def layout():
    return RunOptions().layout(StubStream(), Times("index"))


def test_rows_and_entries_are_named_by_label_or_by_number(layout):
    rows = Named(rows=((0, 1), (1, 3)))
    assert in_words(rows, layout) == "row off: site b, column 3"
    both = Named(changed=(np.array([0, 2]), np.array([1, 0])), dead=(np.array([1]), np.array([1])))
    assert in_words(both, layout) == "changed: a 1, c 0; dead: b 1"


def test_a_long_list_is_cut(layout):
    everywhere = Named(slice_off=True, changed=tuple(np.indices((3, 4)).reshape(2, -1)))
    assert in_words(everywhere, layout) == "slice off; changed: a 0, a 1, a 2, a 3, b 0, b 1 and 6 more"


@pytest.mark.parametrize("events", [None, Named(), Named(changed=(np.zeros(0, int), np.zeros(0, int)))])
def test_nothing_is_no_text(layout, events):
    assert in_words(events, layout) == ""


def test_what_is_said_again_is_one_event():
    chronicle = Chronicle()
    for index, text in enumerate(("", "a; b", "a", "", "a")):
        chronicle.add(index, text)
    assert list(chronicle.events) == [Event("a", 1, 2), Event("b", 1, 1), Event("a", 4, 4)]
    assert str(chronicle.events[0]) == "slice 1–2: a"


def test_only_the_newest_are_kept():
    chronicle = Chronicle(most=2)
    for index, text in enumerate(("a", "a; b", "a; c", "a")):
        chronicle.add(index, text)
    assert list(map(str, chronicle.events)) == ["slice 1: b", "slice 2: c"]
