import numpy as np
import pytest

from undertow.lab.baselines import METHODS
from undertow.lab.methods import chosen, typical_size


def test_typical_size_looks_at_the_first_slice_with_data():
    nan = np.nan
    assert typical_size(np.array([[nan, nan], [0.0, nan], [-2.0, 4.0], [100.0, 100.0]])) == 3
    assert typical_size(np.full((2, 2), nan)) == 1


def test_unknown_methods_list_the_known_ones():
    names = [method.name for method in chosen("olstec, undertow")]
    naive = [baseline.name for baseline in METHODS.values() if baseline.naive]
    assert "last_value" in naive
    assert names == ["olstec", "undertow", *naive]  # the naive are never left out
    with pytest.raises(
        ValueError,
        match="unknown method olstek: choose from undertow, undertow_fast, undertow_paper, ",
    ):
        chosen("olstek")
