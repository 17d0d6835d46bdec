"""The tuned column: for every baseline a small grid, and the entry of it that does best on a separate seed.

A grid is declared here and nowhere else. ``rank_times`` multiplies the rank on offer; everything else is a setting
of the method. The published settings are always a candidate, so tuning cannot lose on the validation seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from undertow.lab.cases.case import Case
from undertow.lab.methods import Method, Settings

VALIDATION_SEED = 10_000
Grid = tuple[Mapping[str, Any], ...]

GRIDS: Mapping[str, Grid] = {
    "moving_mean": tuple({"forgetting": forgetting} for forgetting in (0.3, 0.5, 0.85, 0.95)),
    "running_median": tuple({"window": window} for window in (3, 5, 19, 41)),
    "online_cp": ({"initial_slices": 20}, {"rank_times": 2}, {"rank_times": 2, "initial_slices": 20}),
    "online_sgd": (
        {"step": 0.01},
        {"step": 0.03},
        {"step": 0.3},
        {"step": 0.1, "regularisation": 0.1},
        {"step": 0.03, "regularisation": 1.0},
        {"rank_times": 2},
    ),
    "olstec": (
        {"forgetting": 0.9},
        {"forgetting": 0.98},
        {"forgetting": 0.9, "regularisation": 1.0},
        {"forgetting": 0.98, "temporal_regularisation": 0.01},
        {"forgetting": 0.9, "rank_times": 2},
    ),
    "olstec_truncated": ({"window": 20}, {"window": 20, "forgetting": 0.9}, {"window": 40, "forgetting": 0.98}),
    "brtf": ({"stopping": "repaired"}, {"rank_times": 2}, {"rank_times": 2, "stopping": "repaired"}),
    "grasta": (
        {"rank_times": 2},
        {"constant_step": 0.01},
        {"constant_step": 0.1},
        {"max_iterations": 120, "min_iterations": 20},
    ),
    "sofia": ({"threshold": 1.0}, {"step": 0.01}, {"threshold": 1.0, "step": 0.01}, {"rank_times": 2}),
    "tensorly_robust_pca": ({"sparse_weight": 0.3}, {"sparse_weight": 0.1}),
    "tensorly_masked_cp": ({"rank_times": 2}, {"window": 10}),
}


def candidates(case: Case, method: Method) -> list[Settings]:
    """The settings to try in the tuned column, the published ones first; empty where there is nothing to tune."""
    grid = GRIDS.get(method.name, ())
    published = method.settings(case)
    return [published, *(_settings(published, entry) for entry in grid)] if grid else []


def _settings(published: Settings, entry: Mapping[str, Any]) -> Settings:
    changed = {**published, **entry}
    times = changed.pop("rank_times", None)
    if times is not None:
        changed["rank"] = published["rank"] * times
    return changed
