"""Which settings are tried."""

import pytest

import undertow as ut
from undertow.engine.variants import VARIANTS, candidate_configs, default_max_rank

SHAPE = (12, 10)
SMALL = {"max_rank": 4, "window": 6}
CONFIGS = candidate_configs("default", SMALL, SHAPE)


def test_what_is_not_given_is_tried():
    assert len(CONFIGS) == len(set(CONFIGS)) == len(VARIANTS)
    for config, variant in zip(CONFIGS, VARIANTS, strict=True):
        assert {name: getattr(config, name) for name in variant} == variant
        assert (config.max_rank, config.window) == (4, 6)
    assert {config.max_rank for config in candidate_configs("default", {"window": 6}, SHAPE)} == {16}


@pytest.mark.parametrize("pins", [{"level": False}, {"robust": True, "noise": "shared"}, {"forgetting": 0.7}])
def test_what_is_given_stays_and_nothing_is_tried_twice(pins):
    configs = candidate_configs("default", {**SMALL, **pins, "scale": None}, SHAPE)
    expected = {tuple({**variant, **pins}.items()) for variant in VARIANTS}
    assert len(configs) == len(set(configs)) == len(expected) < len(CONFIGS)
    for config in configs:
        assert {name: getattr(config, name) for name in pins} == pins
    assert {config.scale for config in configs} == {"linear", "log"}


@pytest.mark.parametrize(
    ("preset", "given"),
    [
        ("fixed", {}),
        ("paper", {}),
        ("default", {"start": "svd"}),
        ("default", {"outliers": "gaussian_gamma", "start": "svd", "noise": "shared"}),
        ("default", {"level": True, "robust": True, "noise": "entry", "scale": "log", "forgetting": 0.9}),
    ],
)
def test_where_nothing_is_left_to_choose_there_is_one(preset, given):
    (config,) = candidate_configs(preset, {**SMALL, **given}, SHAPE)
    assert config == ut.make_config(preset, **SMALL, **given)


def test_the_default_max_rank_grows_with_the_slice():
    shapes = [(3,), (12, 10), (100, 100), (30, 20, 20), (200, 200), (1000, 1000), (10**4, 10**4)]
    ranks = [default_max_rank(shape) for shape in shapes]
    assert ranks == sorted(ranks)
    assert (ranks[0], ranks[2], ranks[-1]) == (16, 25, 64)
