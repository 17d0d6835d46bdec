"""What compiled code gets of the settings: numbers that may change freely, and choices that select the program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from jax.tree_util import register_dataclass

STATIC: dict[str, Any] = {"static": True}


@register_dataclass
@dataclass(frozen=True)
class Settings:
    """Settings of one model as a pytree. `undertow.Config` says what each means and checks it.

    Attributes:
        forgetting: μ. This and the next ten are traced, in this order: they can change without compiling anew.
        robust: Whether observations can be outliers while the model learns.
        noise_by_entry: Whether every entry has a noise variance of its own.
        outlier_rate: Prior mean of π.
        outlier_rate_strength: Observations that the prior of π is worth.
        outlier_variance: κ_min.
        precision_prior: c0 = d0.
        max_iterations: Most sweeps per slice.
        tolerance: Convergence threshold, in noise standard deviations.
        max_rank: R, the most components. Arrays may have more slots (`Slots`), which stay empty.
        window: W; the same.
        memory: "window" or "recursive". This and all below are static: each value is a program.
        level: Whether there is a local level.
        outliers: "contaminated" or "gaussian_gamma".
        tau: "slice" or "window"; only the paper's model reads it.
        start: "warm" or "svd".
        dtype: "float32" or "float64".
        seed: Only `start="svd"` reads it.
    """

    forgetting: float
    robust: bool
    noise_by_entry: bool
    outlier_rate: float
    outlier_rate_strength: float
    outlier_variance: float
    precision_prior: float
    max_iterations: int
    tolerance: float
    max_rank: int
    window: int
    memory: Literal["window", "recursive"] = field(metadata=STATIC)
    level: bool = field(metadata=STATIC)
    outliers: Literal["contaminated", "gaussian_gamma"] = field(metadata=STATIC)
    tau: Literal["slice", "window"] = field(metadata=STATIC)
    start: Literal["warm", "svd"] = field(metadata=STATIC)
    dtype: Literal["float32", "float64"] = field(metadata=STATIC)
    seed: int = field(metadata=STATIC)


class Slots(NamedTuple):
    """How many slices and components arrays have room for: as many as a model uses, or more, which stay empty."""

    window: int
    rank: int

    @classmethod
    def exactly(cls, settings: Settings) -> Slots:
        """No more than are used."""
        return cls(settings.window, settings.max_rank)
