"""What the predictors of a model said, beside what it answered: to know who would have been better, in hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.lab.track import Floats

Slices = list[Mapping[str, Floats]]


@dataclass
class Recording:
    """A model that keeps what its predictors said of every slice; nothing where its results do not have that."""

    model: Any
    slices: Slices

    def update(self, x: Any, /) -> Any:
        """Learn the next slice."""
        result = self.model.update(x)
        said = getattr(result, "predictions", {})
        self.slices.append({name: values.astype(np.float32) for name, values in said.items()})
        return result
