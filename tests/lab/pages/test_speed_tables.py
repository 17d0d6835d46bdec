from undertow.lab.pages.speed_tables import figures


def test_numbers_as_people_read_them():
    values = (None, 0.0, 0.0001234, 0.5, 12.345, 123456.7)
    assert [figures(value) for value in values] == ["–", "0", "0.0001", "0.500", "12.3", "123 457"]
