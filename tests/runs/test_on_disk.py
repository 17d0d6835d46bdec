"""A list of slices in a file."""

import numpy as np
import pytest

from undertow.runs.on_disk import OnDisk


def test_it_is_a_list(tmp_path):
    rng = np.random.default_rng(0)
    given = [np.asfortranarray(rng.normal(size=(3, 4))) for _ in range(5)]
    kept = OnDisk(tmp_path / "x")
    for one in given:
        kept.append(one)
    kept[1] = given[0]
    assert len(kept) == 5
    np.testing.assert_array_equal([kept[index] for index in (0, 1, -1)], [given[0], given[0], given[4]])
    pytest.importorskip("dask")
    np.testing.assert_array_equal(kept.lazy()[2:].compute(), given[2:])
    with pytest.raises(IndexError):
        kept[5]
    with pytest.raises(ValueError, match=r"slices must be float64\(3, 4\), got float32\(3, 4\)"):
        kept.append(given[0].astype(np.float32))
