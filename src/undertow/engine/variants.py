"""The settings of the candidates of a stream: what is given stays as it is, what is not is tried."""

from __future__ import annotations

import math
from typing import Any

from undertow.config import Config, make_config
from undertow.engine.state import SPARSE_SETTINGS

VARIANTS: tuple[dict[str, Any], ...] = (
    {"level": False, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.95},
    {"level": False, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.8},
    {"level": True, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.95},
    {"level": True, "robust": False, "noise": "shared", "scale": "linear", "forgetting": 0.95},
    {"level": False, "robust": False, "noise": "shared", "scale": "linear", "forgetting": 0.95},
    {"level": True, "robust": False, "noise": "entry", "scale": "log", "forgetting": 0.95},
    {"level": True, "robust": True, "noise": "entry", "scale": "log", "forgetting": 0.95},
)
"""What is tried where a setting is not given."""
SMALLEST_MAX_RANK, LARGEST_MAX_RANK = 16, 64
LARGEST_SPARSE_MAX_RANK = 16
"""Where only observed entries are kept: rows are many there, and cost R² each."""


def candidate_configs(preset: str, given: dict[str, Any], shape: tuple[int, ...]) -> tuple[Config, ...]:
    """Settings of all candidates: what is given stays as it is, what is not is tried."""
    if preset != "default":
        return (make_config(preset, **given),)
    pinned = {name: value for name, value in given.items() if value is not None}
    if pinned.get("outliers") == "gaussian_gamma" or pinned.get("start") == "svd":
        return (make_config(preset, **pinned),)  # the paper's parts have no variants
    size = {"max_rank": default_max_rank(shape)}
    configs = [make_config(preset, **{**size, **variant, **pinned}) for variant in VARIANTS]
    return tuple(dict.fromkeys(configs))


def sparse_configs(preset: str, given: dict[str, Any], shape: tuple[int, ...]) -> tuple[Config, ...]:
    """The one configuration for streams of which only observed entries are kept."""
    size = {"max_rank": min(default_max_rank(shape), LARGEST_SPARSE_MAX_RANK)} if preset == "default" else {}
    pinned = {name: value for name, value in given.items() if value is not None}
    settings = {**size, **SPARSE_SETTINGS, **pinned} if preset in ("default", "fixed") else pinned
    return (make_config(preset, **settings),)


def default_max_rank(shape: tuple[int, ...]) -> int:
    """By the size of a slice: a picture needs more components than a small table."""
    return min(max(SMALLEST_MAX_RANK, round(math.sqrt(math.prod(shape)) / 4)), LARGEST_MAX_RANK)
