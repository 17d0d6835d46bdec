"""Settings: presets, and the largest rank by the size of a slice."""

import pytest

import undertow as ut
from undertow.config import PRESETS


def test_every_preset_is_a_configuration():
    assert list(PRESETS) == ["default", "fast", "paper"]
    assert ut.make_config() == ut.Config()
    assert ut.make_config("fast").memory == "recursive"
    with pytest.raises(ValueError, match="preset must be one of 'default', 'fast', 'paper', got 'fixed'"):
        ut.make_config("fixed")


def test_the_paper_stops_after_six_iterations_unless_told_otherwise():
    assert ut.make_config("paper").max_iterations == 6
    assert ut.make_config("paper", max_iterations=100).max_iterations == 100


@pytest.mark.parametrize(
    ("shape", "largest"), [((7,), 16), ((6, 5), 16), ((100, 100), 25), ((144, 176), 40), ((1080, 1920), 64)]
)
def test_the_largest_rank_follows_the_size_of_a_slice(shape, largest):
    assert ut.Config().rank_limit(shape) == largest
    assert ut.Config().sized(shape).max_rank == largest
    assert ut.Config().rank_limit(shape, sparse=True) == 16
    assert ut.Config(max_rank=3).sized(shape).max_rank == 3


def test_states_models_and_fleets_have_the_same_largest_rank():
    assert ut.init(ut.make_config(), (6, 5)).config.max_rank == 16
    assert ut.init(ut.make_config(noise="shared"), (6, 5), entries=8).capacity == 16
    assert ut.Fleet(1, (6, 5)).config.max_rank == 16
    assert ut.RobustCP().config.max_rank is None  # not known before the first slice
    with pytest.raises(ValueError, match="max_rank must be known here"):
        ut.Config().settings()
