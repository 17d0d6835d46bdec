"""Names of modes, rows and entries."""

from types import SimpleNamespace

import numpy as np
import pytest

from undertow.view.names import Names, in_words

NAMES = Names.of((3, 2), SimpleNamespace(dims=("src", "dst"), coords=(("A", "B", 7), None)))


@pytest.mark.parametrize(
    "entry", [{"src": "B", "dst": 1}, {"dst": 1, "src": "B"}, ("B", 1), ["B", -1], ("B", np.int8(1))]
)
def test_an_entry_is_found_by_its_labels_whatever_their_order(entry):
    assert NAMES.position(entry) == (1, 1)
    assert NAMES.entry((1, 1)) == "src B, dst 1"


def test_labels_count_before_numbers():
    assert NAMES.position((7, 0)) == (2, 0)
    assert NAMES.position(("7", 0)) == (2, 0)  # as typed on a command line


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (("C", 0), "src must be one of A, B, 7, got 'C'"),
        (("A", 2), "dst must be one of 0, 1, got 2"),
        (("A", True), "dst must be one of"),
        ((0, 0), "src must be one of"),
        ("A", "one label or number for each of src, dst"),
        ({"src": "A"}, "a label for each of src, dst, got src"),
    ],
)
def test_other_entries_are_refused_by_name(entry, named):
    with pytest.raises(ValueError, match=named):
        NAMES.position(entry)


def test_numbers_will_do_where_labels_are_texts():
    texts = Names.of((2, 2), SimpleNamespace(dims=("src", "dst"), coords=(("A", "B"), ("V", "W"))))
    assert texts.position((1, "V")) == (1, 0)
    with pytest.raises(ValueError, match="dst must be one of V, W, got 2"):
        texts.position((0, 2))


def test_modes_without_names_are_numbered():
    plain = Names.of((4,))
    assert plain.dims == ("mode_1",)
    assert not plain.named
    assert plain.position(3) == (3,)


def test_events_are_told_by_name():
    events = SimpleNamespace(slice_off=False, rows=((0, 1),), changed=(np.array([0]), np.array([1])), dead=())
    assert in_words(events, NAMES) == "row off: src B; changed: A 1"
