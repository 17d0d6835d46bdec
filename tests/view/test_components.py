"""Components as people read them, against the plain definitions."""

import numpy as np
import pytest

from undertow.view.components import Components
from undertow.view.names import Names

RNG = np.random.default_rng(3)
MODES = (RNG.normal(size=(4, 2)), RNG.normal(size=(3, 2)))
TEMPORAL = RNG.normal(size=(5, 2)) * [1.0, 10.0]


def low_rank(modes, temporal):
    return np.einsum("tr,ir,jr->tij", temporal, *modes)


def test_normalised_components_are_the_same_low_rank_part():
    found = Components.of(MODES, TEMPORAL)
    assert low_rank(found.loadings, found.temporal) == pytest.approx(low_rank(MODES, TEMPORAL))
    for matrix in found.loadings:
        assert np.linalg.norm(matrix, axis=0) == pytest.approx([1, 1])
        assert (matrix.max(axis=0) == np.abs(matrix).max(axis=0)).all()


def test_shares_are_of_the_sum_of_squares():
    found, total = Components.of(MODES, TEMPORAL), (low_rank(MODES, TEMPORAL) ** 2).sum()
    own = [(low_rank([m[:, [r]] for m in MODES], TEMPORAL[:, [r]]) ** 2).sum() / total for r in range(2)]
    assert found.shares == pytest.approx(sorted(own, reverse=True))


def test_parts_of_an_entry_add_up_to_it():
    found = Components.of(MODES, TEMPORAL)
    assert found.parts((2, 1)).sum() == pytest.approx(low_rank(MODES, TEMPORAL)[-1, 2, 1])


def test_the_table_is_tidy():
    found = Components.of(MODES, TEMPORAL, np.array([4, -1]))
    table = found.table(Names.of((4, 3), dims=("src", "dst"), coords=(tuple("ABCD"), None)))
    assert len(table) == 2 * (4 + 3)
    assert table.where(component=1, mode="src").column("label") == list("ABCD")
    assert {row["since"] for row in table} == {4, None}
    assert table.where(component=2, mode="dst")[1]["loading"] == found.loadings[1][1, 1]


def test_no_component_is_an_empty_table():
    none = Components.of((np.zeros((4, 0)), np.zeros((3, 0))), np.zeros((2, 0)))
    assert none.count == 0
    assert len(none.table(Names.of((4, 3)))) == 0
