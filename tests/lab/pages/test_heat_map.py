from undertow.lab.pages.heat_map import colour, digits


def test_colours_run_from_green_to_red():
    assert colour(0) == "rgb(22,112,101)"
    assert colour(5) == "rgb(196,78,58)"
    assert digits(0.12345, 3) == "0.123"
    assert digits(0.00012, 3) == "0.0001"
    assert digits(1234.5, 3) == "1.23e+03"
