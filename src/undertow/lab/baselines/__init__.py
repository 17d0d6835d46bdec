"""Rivals of Undertow, each in one file with the same init/step shape; see the README in this folder."""

from undertow.lab.baselines import brtf, grasta, naive, olstec, online_cp, online_sgd, sofia, tensorly_window
from undertow.lab.baselines.registry import METHODS, Method, method
from undertow.lab.baselines.result import BaselineResult

__all__ = [
    "METHODS",
    "BaselineResult",
    "Method",
    "brtf",
    "grasta",
    "method",
    "naive",
    "olstec",
    "online_cp",
    "online_sgd",
    "sofia",
    "tensorly_window",
]
