"""Shrink the noise (tempering): less noise and more outliers, if the ELBO gains."""

from __future__ import annotations

from dataclasses import replace

from undertow.model.control import Progress
from undertow.model.noise.models import outlier_model
from undertow.model.settings import Settings
from undertow.model.types import Window


def shrink_noise(settings: Settings, window: Window, progress: Progress) -> Progress:
    """The outlier model with less noise, where that is better."""
    outliers = outlier_model(settings).shrink_noise(
        settings, progress.outliers, window, progress.residual, progress.variance
    )
    return replace(progress, outliers=outliers)
