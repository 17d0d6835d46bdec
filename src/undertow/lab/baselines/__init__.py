"""Baselines: methods to compare with, each in one file with the same init/step shape; see the README in this folder."""

from undertow.lab.baselines.baseline import Baseline, BaselineResult
from undertow.lab.baselines.registry import METHODS

__all__ = ["METHODS", "Baseline", "BaselineResult"]
