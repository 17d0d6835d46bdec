"""Places along a mode: a ladder of sizes, free places first, a bound."""

import numpy as np
import pytest

from undertow.inputs.labels import growing
from undertow.inputs.labels.names import FREE, Labels, is_free, labels_in, with_labels

LABELS = Labels(("src", "dst"), (("a", "b", "c"), None))


def test_the_ladder_has_few_sizes_and_a_third_free_at_most():
    sizes = {growing.rung(size) for size in range(1, 4097)}
    assert len(sizes) == 24
    assert all(growing.rung(size) >= size > 2 * growing.rung(size) // 3 - 1 for size in range(3, 4097))


def test_what_is_new_takes_free_places_before_the_mode_grows():
    one = growing.joined(LABELS, (3, 5), [("d", "e"), ()])
    assert one.changed
    assert one.labels.coords == (("a", "b", "c", "d", "e", FREE(5)), None)
    assert one.places[0].tolist() == [0, 1, 2, -1, -1, -1]
    assert one.places[1].tolist() == [0, 1, 2, 3, 4]
    two = growing.joined(one.labels, (6, 5), [("f",), ()])
    assert not two.changed
    assert two.labels.coords[0] == ("a", "b", "c", "d", "e", "f")
    assert one.labels.known().coords[0] == ("a", "b", "c", "d", "e")


def test_who_is_retired_leaves_an_empty_place():
    gone = growing.left(LABELS, [np.array([False, True, False]), np.zeros(5, bool)])
    assert gone.places[0].tolist() == [0, -1, 2]
    assert gone.labels.coords[0] == ("a", FREE(1), "c")
    again = growing.left(gone.labels, [np.array([False, True, False]), np.zeros(5, bool)])
    assert not again.changed
    assert growing.joined(gone.labels, (3, 5), [("d",), ()]).labels.coords[0] == ("a", "d", "c")


def test_a_million_of_them_are_refused_in_a_sentence():
    many = tuple(range(10**6))
    with pytest.raises(ValueError, match=r"1,000,000 labels of src that are new, 0 among them, .* room for 4,096"):
        growing.joined(LABELS, (3, 5), [many, ()])


def test_free_places_survive_in_files():
    labels = growing.joined(LABELS, (3, 5), [("d", "e"), ()]).labels
    found = labels_in(with_labels(({"shape": (6, 5)}, {}), labels), "x")
    assert found == labels
    assert is_free(found.coords[0][5])
