"""Validation of sparse slices."""

import numpy as np
import pytest
import scipy.sparse

import undertow as ut
from undertow.inputs.sparse import as_entries


def test_zeros_are_observations_and_nan_asks():
    x = ut.Entries(([0, 1, 2], [0, 0, 0]), [0.0, np.nan, 2.0], (3, 2))
    np.testing.assert_array_equal(x.mask, [True, False, True])
    piece = x.to_slice()
    np.testing.assert_array_equal(piece.mask[:, 0], [True, False, True])
    assert not piece.mask[:, 1].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((([0, 1], [0, 1]), [1.0], (2, 2)), "indices of mode 0 must be as many"),
        ((([0, 2], [0, 1]), [1.0, 2.0], (2, 2)), "below its size 2, got 2"),
        ((([0, -1], [0, 1]), [1.0, 2.0], (2, 2)), "at least 0 and below its size 2, got -1"),
        ((([0.0, 1.0], [0, 1]), [1.0, 2.0], (2, 2)), "must be integers, got dtype float64"),
        ((([0, 1],), [1.0, 2.0], (2, 2)), "a tuple of 2 arrays"),
        ((np.zeros((2, 2), int), [1.0, 2.0], (2, 2)), "a tuple of 2 arrays.* got ndarray"),
        ((([0, 1], [0, 1]), [1.0, np.inf], (2, 2)), r"must be finite, got 1 infinite of 2, the first at \(1, 1\)"),
        ((([0, 1, 0], [0, 1, 0]), [1.0, 2.0, 3.0], (2, 2)), r"once each, got 1 repeated, the first at \(0, 0\)"),
        ((([0, 0], [0, 0]), [1.0, 2.0], (2**31 - 1,) * 2), "once each"),
        ((([0], [0], [0]), [1j], (2**31 - 1,) * 3), "real numbers"),
        ((([0, 0],) * 3, [1.0, 2.0], (2**31 - 1,) * 3), "once each"),
        ((([0], [0]), [[1.0]], (2, 2)), "in one row"),
        ((([0], [0]), [1.0], (2, 0)), "each of size 1 to"),
        ((([0], [0]), [1.0], (2, 2.5)), "tuple of integers"),
    ],
)
def test_bad_entries_are_refused_in_one_sentence(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ut.Entries(*arguments)


def test_a_mask_beside_sparse_input_is_refused():
    with pytest.raises(ValueError, match="mask must not be given with a sparse x"):
        ut.RobustCP().update(scipy.sparse.eye(3), mask=np.ones((3, 3)))


def test_scipy_of_any_format():
    x = scipy.sparse.random_array((11, 8), density=0.3, rng=np.random.default_rng(0))
    for kind in ("coo", "csr", "csc", "lil", "dok", "bsr"):
        entries = as_entries(x.asformat(kind))
        found = np.zeros((11, 8))
        found[entries.indices] = entries.values
        np.testing.assert_array_equal(found, x.toarray())
    old = as_entries(scipy.sparse.csr_matrix(x.toarray()))
    assert old.values.sum() == pytest.approx(x.sum())


def test_sparse_slices_have_a_limited_number_of_modes():
    with pytest.raises(ValueError, match="at most 12 modes, got 13"):
        ut.Entries(([0],) * 13, [1.0], (1,) * 13)
