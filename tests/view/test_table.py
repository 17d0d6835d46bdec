"""A small table."""

import pytest

from undertow.view.table import Table

TABLE = Table(("name", "share"), [("a<b", 0.5), ("c", None)])


def test_rows_are_dictionaries():
    assert TABLE[0] == {"name": "a<b", "share": 0.5}
    assert len(TABLE) == 2
    assert [row["share"] for row in TABLE] == TABLE.column("share") == [0.5, None]
    assert TABLE.where(name="c").column("share") == [None]


def test_nothing_in_the_data_becomes_markup():
    assert "a&lt;b" in TABLE._repr_html_()


def test_pandas_takes_it_as_it_is():
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(TABLE).equals(TABLE.to_pandas())


def test_a_long_table_says_how_much_is_left_out():
    long = Table(("x",), [(number,) for number in range(30)])
    assert str(long).endswith("… 10 more rows")
    assert "10 more rows" in long._repr_html_()
