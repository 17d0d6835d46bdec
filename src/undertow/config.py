"""Every setting of the model, with its meaning and default. A preset is a choice of defaults, nothing more."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

if TYPE_CHECKING:
    from undertow.model.settings import Settings

Outliers = Literal["contaminated", "gaussian_gamma"]
Noise = Literal["entry", "shared"]
Tau = Literal["slice", "window"]
Start = Literal["warm", "svd"]
Memory = Literal["window", "recursive"]
Scale = Literal["linear", "log"]
Dtype = Literal["float32", "float64"]

SMALLEST_MAX_RANK, LARGEST_MAX_RANK = 16, 64
LARGEST_SPARSE_MAX_RANK = 16
"""Where only observed entries are kept: rows are many there, and cost R² each."""


@dataclass(frozen=True)
class Config:
    """Settings of one model, checked when it is made.

    Attributes:
        max_rank: R, the largest number of active components; the rank itself is found from the data. None, the default,
            is a quarter of the root of the number of entries of a slice, at least 16 and at most 64: a picture needs
            more components than a small table.
        window: W, the number of slices that are kept and inferred again at each step.
        forgetting: μ in (0, 1]: a slice that is t steps old has the weight μ^t.
        memory: "window" forgets what has left the window; "recursive" keeps it in exponentially discounted statistics
            (factor μ per slice).
        level: Whether every entry has a local level, a random walk of its own, besides the low rank.
        robust: Whether observations can be outliers while the model learns. If not, an entry is called an outlier when
            it lies far from its prediction by the rest of its slice and all slices before; the model learns from it as
            from any other.
        scale: "linear" models the data as they are, "log" their logarithm (asinh, which is linear near 0), for
            sizes that vary by factors.
        outliers: The outlier model: "contaminated" (contaminated normal noise) or "gaussian_gamma" (the paper's
            sparse term).
        noise: One noise variance per entry, pooled ("entry"), or one for all entries ("shared"). The paper's model has
            one for all.
        tau: The paper's model only: noise precision from the newest slice ("slice"), as its authors ran it, or from
            the window ("window"), which is the exact update.
        outlier_rate: Prior mean of the outlier fraction π, in (0, 0.5).
        outlier_rate_strength: Number of observations that the prior of π is worth.
        outlier_variance: κ_min: an outlier's variance is at least this many times that of the noise.
        precision_prior: c0 = d0 of the components' precisions λ_r ~ Ga(c0, d0), in units of the stream; the paper has
            1e-6.
        start: "warm" continues from the last step, and components are added and pruned by the ELBO; "svd" begins
            every step with all components from an SVD of the window and lets them shrink, as the paper does.
        max_iterations: Largest number of sweeps over all unknowns per slice. The paper's preset has 6: there its
            authors' code stops; with 100 it goes on until it has converged, and is less accurate.
        tolerance: Converged once the newest slice moves by less than this many noise standard deviations (root mean
            square).
        dtype: Precision of the arithmetic, "float32" or "float64".
        seed: Used by `start="svd"` only, where the window has fewer directions than components.

    Example:
        >>> Config(max_rank=5).window
        20
    """

    max_rank: int | None = None
    window: int = 20
    forgetting: float = 0.95
    memory: Memory = "window"
    level: bool = False
    robust: bool = True
    scale: Scale = "linear"
    outliers: Outliers = "contaminated"
    noise: Noise = "entry"
    tau: Tau = "window"
    outlier_rate: float = 0.02
    outlier_rate_strength: float = 50.0
    outlier_variance: float = 30.0
    precision_prior: float = 0.1
    start: Start = "warm"
    max_iterations: int = 30
    tolerance: float = 0.01
    dtype: Dtype = "float32"
    seed: int = 0

    def settings(self, capacity: int | None = None) -> Settings:
        """What the compiled programs get.

        Args:
            capacity: Slots for components, if other than `max_rank`.

        Returns:
            Static choices and plain numbers; without `scale`, since programs see the data already scaled.

        Raises:
            ValueError: Neither says how many components there can be.
        """
        from undertow.model.settings import Settings  # here, so that settings can be checked without loading JAX

        named = {field.name: getattr(self, field.name) for field in fields(self)}
        del named["scale"]
        named["noise_by_entry"] = named.pop("noise") == "entry"
        named["max_rank"] = capacity or self.max_rank
        if named["max_rank"] is None:
            raise ValueError("max_rank must be known here, got None: use sized(shape) first.")
        return Settings(**named)

    def rank_limit(self, shape: tuple[int, ...], *, sparse: bool = False) -> int:
        """`max_rank` as given, else by the size of a slice.

        Args:
            shape: (I_1, …, I_N), the shape of a slice.
            sparse: Whether only observed entries are kept.

        Returns:
            R.

        Example:
            >>> Config().rank_limit((6, 5)), Config().rank_limit((144, 176)), Config(max_rank=3).rank_limit((6, 5))
            (16, 40, 3)
        """
        if self.max_rank is not None:
            return self.max_rank
        largest = LARGEST_SPARSE_MAX_RANK if sparse else LARGEST_MAX_RANK
        return min(max(SMALLEST_MAX_RANK, round(math.sqrt(math.prod(shape)) / 4)), largest)

    def sized(self, shape: tuple[int, ...], *, sparse: bool = False) -> Config:
        """The same settings with `max_rank` for slices of this shape, as `rank_limit` has it."""
        return replace(self, max_rank=self.rank_limit(shape, sparse=sparse))

    def __post_init__(self) -> None:
        for name, low in (("max_rank", 1), ("window", 1), ("max_iterations", 2), ("seed", 0)):
            if getattr(self, name) is not None or name != "max_rank":
                object.__setattr__(self, name, _integer(name, getattr(self, name), low))
        for name in ("level", "robust"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}.")
            object.__setattr__(self, name, bool(getattr(self, name)))
        infinity = float("inf")
        for name, low_end, high_end in (
            ("forgetting", 0.0, 1.0),
            ("outlier_rate", 0.0, 0.5),
            ("outlier_rate_strength", 0.0, infinity),
            ("outlier_variance", 1.0, infinity),
            ("precision_prior", 0.0, infinity),
            ("tolerance", 0.0, infinity),
        ):
            number = _between(name, getattr(self, name), low_end, high_end, high_included=name == "forgetting")
            object.__setattr__(self, name, number)
        for name, hint in get_type_hints(Config).items():
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            if choices and getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {getattr(self, name)!r}.")
        if self.outliers == "gaussian_gamma" and self.start == "warm":
            raise ValueError(
                "start must be 'svd' with outliers='gaussian_gamma', got 'warm': components are added with the other "
                "outlier model only."
            )
        if self.memory == "recursive" and self.start == "svd":
            raise ValueError(
                "memory must be 'window' with start='svd', got 'recursive': steps that start anew keep no statistics."
            )
        for name, plain in (("level", False), ("robust", True), ("noise", "shared"), ("scale", "linear")):
            if self.outliers == "gaussian_gamma" and getattr(self, name) != plain:
                raise ValueError(
                    f"{name} must be {plain!r} with outliers='gaussian_gamma', got {getattr(self, name)!r}: "
                    "the paper's model has nothing else."
                )


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"memory": "recursive", "window": 10, "max_rank": 15},
    "paper": {
        "max_rank": 15,
        "outliers": "gaussian_gamma",
        "noise": "shared",
        "tau": "slice",
        "precision_prior": 1e-6,
        "start": "svd",
        "max_iterations": 6,
        "tolerance": 1e-3,
    },
}


def make_config(preset: str = "default", **settings: Any) -> Config:
    """The configuration of a preset, with any setting replaced.

    Args:
        preset: One of `PRESETS`.
        **settings: Fields of `Config`; ``None`` means "as the preset has it".

    Returns:
        The checked configuration.

    Raises:
        TypeError: A name is no setting, or a value has the wrong type.
        ValueError: The preset is unknown, a value is out of its range, or two settings exclude each other.

    Example:
        >>> make_config("fast", max_rank=5).window
        10
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(map(repr, PRESETS))}, got {preset!r}.")
    known = [field.name for field in fields(Config)]
    for name in settings:
        if name not in known:
            raise TypeError(f"{name!r} is not a setting of the model: use one of {', '.join(known)}.")
    given = {name: value for name, value in settings.items() if value is not None}
    return Config(**{**PRESETS[preset], **given})


def _integer(name: str, value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    number = int(value)
    if not low <= number < 2**31:
        raise ValueError(f"{name} must be at least {low} and below 2**31, got {value!r}.")
    return number


def _between(name: str, value: Any, low: float, high: float, high_included: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not (low < number < high or (high_included and number == high)):
        closing = "]" if high_included else ")"
        raise ValueError(f"{name} must lie in ({low:g}, {high:g}{closing}, got {value!r}.")
    return number
