"""Every knob of the model, with its meaning and default. A preset is a choice of defaults, nothing more."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_type_hints

import numpy as np

Outliers = Literal["contaminated", "gaussian_gamma"]
Noise = Literal["entry", "shared"]
Tau = Literal["slice", "window"]
Start = Literal["warm", "svd"]
Memory = Literal["window", "recursive"]
Scale = Literal["linear", "log"]
Dtype = Literal["float32", "float64"]


@dataclass(frozen=True)
class Config:
    """Settings of one model. Programs are compiled once per shape and per choice of what is not a plain number."""

    max_rank: int = 15
    """R, the most components that can live at once; the rank itself is found from the data."""
    window: int = 20
    """W, slices kept and re-examined at each step."""
    forgetting: float = 0.95
    """μ in (0, 1]: a slice t steps old counts μ^t."""
    memory: Memory = "window"
    """What has left the window is forgotten ("window"), or lives on in sums that forget by μ a slice ("recursive")."""
    level: bool = False
    """Whether every entry has a level of its own, a random walk, besides the low rank."""
    robust: bool = True
    """Whether observations can be outliers while the model learns. If not, an entry is an outlier that comes as a
    surprise after the rest of its slice and all slices before, and it is learned from like any other."""
    scale: Scale = "linear"
    """Model the data as they are, or their logarithm ("log": asinh, linear near 0): sizes that vary by factors."""
    outliers: Outliers = "contaminated"
    """What an outlier is: "contaminated" (a wide normal) or "gaussian_gamma" (the paper's sparse term)."""
    noise: Noise = "entry"
    """One noise level per entry, pooled ("entry"), or one for all ("shared"). The paper's model has one for all."""
    tau: Tau = "window"
    """Paper's model only: noise from the newest slice, as its authors ran it, or from the window (the exact step)."""
    outlier_rate: float = 0.02
    """Prior mean of the share of outliers π."""
    outlier_rate_strength: float = 50.0
    """How many observations the prior of π is worth."""
    outlier_variance: float = 30.0
    """κ_min: an outlier's variance is at least this many times the noise's."""
    precision_prior: float = 0.1
    """c0 = d0 of the components' precisions λ_r ~ Ga(c0, d0), in units of the stream; the paper has 1e-6."""
    start: Start = "warm"
    """Go on from the last step, with births and deaths of components judged by the evidence ("warm"), or begin every
    step anew with all components from an SVD of the window and let them shrink away, as the paper does ("svd")."""
    max_iterations: int = 30
    """Most sweeps over all unknowns per slice."""
    tolerance: float = 0.01
    """Stop when the newest slice moves by less than this many noise standard deviations (root mean square)."""
    dtype: Dtype = "float32"
    """Precision of the arithmetic."""
    seed: int = 0
    """Used by `start="svd"` only, where the window has fewer directions than components."""

    @property
    def noise_by_entry(self) -> Any:
        """noise == "entry", as a number that compiled programs can take."""
        return self.noise == "entry" if isinstance(self.noise, str) else self.noise

    def split(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Numbers, which compiled programs take as arguments, and the rest, which decides what is compiled."""
        numbers = tuple(getattr(self, "noise_by_entry" if name == "noise" else name) for name in NUMBERS)
        return numbers, tuple(getattr(self, name) for name in STRUCTURE)

    @classmethod
    def join(cls, structure: tuple[Any, ...], numbers: tuple[Any, ...]) -> Config:
        """Undo `split`, unchecked: inside a compiled program the numbers are not known yet."""
        config = object.__new__(cls)
        for name, value in zip((*STRUCTURE, *NUMBERS), (*structure, *numbers), strict=True):
            object.__setattr__(config, name, value)
        object.__setattr__(config, "scale", "linear")  # what is compiled sees the data already scaled
        return config

    def __post_init__(self) -> None:
        for name, low in (("max_rank", 1), ("window", 1), ("max_iterations", 2), ("seed", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), low))
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
            choices = get_args(hint)
            if choices and getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {getattr(self, name)!r}.")
        if self.outliers == "gaussian_gamma" and self.start == "warm":
            raise ValueError(
                "start must be 'svd' with outliers='gaussian_gamma', got 'warm': births need the other outlier model."
            )
        if self.memory == "recursive" and self.start == "svd":
            raise ValueError(
                "memory must be 'window' with start='svd', got 'recursive': what begins anew every time has no past."
            )
        for name, plain in (("level", False), ("robust", True), ("noise", "shared"), ("scale", "linear")):
            if self.outliers == "gaussian_gamma" and getattr(self, name) != plain:
                raise ValueError(
                    f"{name} must be {plain!r} with outliers='gaussian_gamma', got {getattr(self, name)!r}: "
                    "the paper's model knows nothing else."
                )


NUMBERS = (
    "forgetting",
    "robust",
    "noise",
    "outlier_rate",
    "outlier_rate_strength",
    "outlier_variance",
    "precision_prior",
    "max_iterations",
    "tolerance",
)
"""Settings that can change without compiling anew."""
STRUCTURE = tuple(field.name for field in fields(Config) if field.name not in (*NUMBERS, "scale"))

# "default" and "fixed" have the same settings, but with the former `RobustCP` chooses what is not given (panel.py).
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fixed": {},
    "fast": {"memory": "recursive", "window": 10},
    "paper": {
        "outliers": "gaussian_gamma",
        "noise": "shared",
        "tau": "slice",
        "precision_prior": 1e-6,
        "start": "svd",
        "max_iterations": 100,
        "tolerance": 1e-3,
    },
}


def make_config(preset: str = "default", **settings: Any) -> Config:
    """The configuration of a preset, with any setting replaced; ``None`` means "as the preset has it"."""
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(map(repr, PRESETS))}, got {preset!r}.")
    known = [field.name for field in fields(Config)]
    for name in settings:
        if name not in known:
            raise TypeError(f"{name!r} is not a setting of the model: use one of {', '.join(known)}.")
    given = {name: value for name, value in settings.items() if value is not None}
    return Config(**{**PRESETS[preset], **given})


def _whole(name: str, value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
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
