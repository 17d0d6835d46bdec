"""The predictors of a tracker, in the order of their weights."""

from __future__ import annotations

from undertow.tracker.predictors.base import Predictor
from undertow.tracker.predictors.covariance import covariances
from undertow.tracker.predictors.level import Level

LEVEL = Level()
OTHERS: tuple[Predictor, ...] = (covariances(),)
"""What predicts beside the level and the CP models; a new predictor is one more line here."""
NAMES = (*LEVEL.names, *(name for one in OTHERS for name in one.names), "season")
"""In the order of their weights; those of the CP models follow."""
