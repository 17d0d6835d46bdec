"""Validation of the slices of a fleet: as an array, by member, and what is refused."""

import numpy as np
import pytest

from undertow.inputs.members import as_member_slices, positions_of

MEMBERS = np.array([0, 2, 7])
SHAPE = (2, 3)


def slices():
    return np.arange(18.0).reshape(3, *SHAPE)


def test_an_array_of_all_members():
    made, here = as_member_slices(slices(), None, None, MEMBERS, SHAPE)
    np.testing.assert_array_equal(made.values, slices())
    assert here.tolist() == [True, True, True]


def test_values_of_absent_members_are_ignored():
    x = slices()
    x[1] = np.inf
    made, here = as_member_slices(x, None, np.array([True, False, True]), MEMBERS, SHAPE)
    assert not made.mask[1].any()
    assert (made.values[1] == 0).all()
    assert here.tolist() == [True, False, True]


def test_a_dictionary_names_who_is_present():
    made, here = as_member_slices({7: slices()[2], 0: slices()[0]}, None, None, MEMBERS, SHAPE)
    assert here.tolist() == [True, False, True]
    np.testing.assert_array_equal(made.values[[0, 2]], slices()[[0, 2]])
    assert not made.mask[1].any()


@pytest.mark.parametrize(
    ("x", "mask", "present", "error", "message"),
    [
        (slices()[:2], None, None, ValueError, r"x must have shape \(3, 2, 3\), a slice for each of the 3 members"),
        (slices(), None, [True], ValueError, "present must be 3 times True or False"),
        (slices(), None, np.ones(3), ValueError, "got float64 of shape"),
        (np.full((3, *SHAPE), np.inf), None, None, ValueError, "member 0: x must be finite where observed"),
        (slices().astype(str), None, None, TypeError, "must hold real numbers"),
        ({3: slices()[0]}, None, None, KeyError, "member 3 is not in the fleet"),
        ({2: slices()[0, :1]}, None, None, ValueError, "member 2: x must have shape"),
        ({2: slices()[0]}, np.ones(SHAPE), None, TypeError, "mask must be one too"),
        ({2: slices()[0]}, None, np.ones(3, bool), TypeError, "present is who is in it"),
    ],
)
def test_bad_input(x, mask, present, error, message):
    with pytest.raises(error, match=message):
        as_member_slices(x, mask, present, MEMBERS, SHAPE)


def test_positions():
    assert positions_of(MEMBERS, np.array([7, 0])).tolist() == [2, 0]
    assert positions_of(MEMBERS, np.array([])).tolist() == []
    with pytest.raises(ValueError, match="named twice"):
        positions_of(MEMBERS, np.array([2, 2]))
    with pytest.raises(TypeError, match="integers"):
        positions_of(MEMBERS, np.array([0.5]))
    with pytest.raises(KeyError, match="member 1 is not in the fleet"):
        positions_of(np.zeros(0, np.int64), np.array([1]))
