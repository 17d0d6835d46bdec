"""Settings as earlier versions had them, as they would be given now. Loads no compiler."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from undertow.config import Config, make_config

PRESETS = {"fixed": "default"}
"""Presets of earlier versions, and what they are called now."""
MAX_RANK = 15
"""Of those presets where none was given, before it depended on the size of a slice."""
LATER = {"grow": False}
"""Settings that trackers got later, and what was so before there were any."""


def current_params(params: dict[str, Any], config: Config | None = None) -> dict[str, Any]:
    """Settings that were given to an earlier version.

    Args:
        params: `preset` and settings; None where the preset decides.
        config: What they amounted to, where that is known: whatever the presets have otherwise now is added.

    Returns:
        `preset` and settings to the same effect.

    Example:
        >>> current_params({"preset": "fixed", "window": 4})
        {'preset': 'default', 'window': 4, 'max_rank': 15}
    """
    if params.get("preset") in PRESETS:
        largest = MAX_RANK if params.get("max_rank") is None else params["max_rank"]
        params = {**params, "preset": PRESETS[params["preset"]], "max_rank": largest}
    if config is None:
        return params
    now = make_config(**params)
    return {**params, **{name: value for name, value in asdict(config).items() if value != getattr(now, name)}}
