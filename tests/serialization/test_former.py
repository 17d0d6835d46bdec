"""Settings of earlier versions."""

import undertow as ut
from undertow.serialization.former import current_params


def test_a_preset_that_is_gone_has_another_name():
    assert current_params({"preset": "fixed", "max_rank": 3}) == {"preset": "default", "max_rank": 3}
    assert current_params({"preset": "fixed", "max_rank": None}) == {"preset": "default", "max_rank": 15}
    given = {"preset": "fast", "window": None}
    assert current_params(given) == given


def test_what_a_preset_has_otherwise_now_is_named():
    was = ut.make_config("paper", max_iterations=100)
    params = current_params({"preset": "paper", "window": None}, was)
    assert params == {"preset": "paper", "window": None, "max_iterations": 100}
    assert ut.make_config(**params) == was
