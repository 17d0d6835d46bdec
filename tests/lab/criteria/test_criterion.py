import math

from undertow.lab.criteria.criterion import Asked


def test_limits_read_as_they_are_meant():
    asked = (Asked(at_most=0.5), Asked(at_least=1), Asked(), Asked(at_least=0, at_most=1))
    assert [str(one) for one in asked] == ["≤ 0.5", "≥ 1", "", "0 to 1"]
    band = Asked(at_least=0.93, at_most=0.97)
    assert [band.reached(value) for value in (0.92, 0.95, 0.98)] == [False, True, False]
    assert Asked().reached(1.0) is None


def test_seeds_are_averaged_or_the_worst_is_taken():
    assert Asked(at_most=1).combine([1, 3]) == 2
    assert Asked(at_most=1, over="worst").combine([1, 3]) == 3
    assert Asked(at_least=1, over="worst").combine([1, 3]) == 1
    assert math.isnan(Asked(at_most=1).combine([1, math.nan]))
    assert math.isnan(Asked().combine([]))


def test_nan_is_never_good_enough():
    assert not Asked(at_most=1).reached(math.nan)
    assert not Asked(at_least=1).reached(math.nan)
