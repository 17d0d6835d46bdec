import pytest

from undertow.lab.names import pick, separated

KNOWN = {"red": 1, "blue": 2}


def test_names_become_entries_in_their_order_each_once():
    assert pick("colour", separated("blue, red,blue,"), KNOWN) == [2, 1]
    assert pick("colour", separated(None), KNOWN) == [1, 2]


@pytest.mark.parametrize(("names", "shown"), [(["green"], "green"), ([], r"\(none\)")])
def test_unknown_names_list_the_known_ones(names, shown):
    with pytest.raises(ValueError, match=f"unknown colour {shown}: choose from red, blue"):
        pick("colour", names, KNOWN)
