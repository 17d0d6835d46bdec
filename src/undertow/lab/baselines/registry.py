"""The rivals by name: what each can do, and how to configure it alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from undertow.lab.baselines import brtf, grasta, naive, olstec, online_cp, online_sgd, sofia, tensorly_window
from undertow.lab.baselines.result import BaselineResult


@dataclass(frozen=True, eq=False)
class Method:
    """One entry of the registry.

    name              its key
    init, step        the contract: state = init(config, shape); state, result = step(state, values, mask)
    Config            dataclass of its knobs
    defaults          knobs that this entry sets differently from the Config
    missing           takes incomplete slices
    orders            smallest and largest order of a slice; None for no largest
    batch             refits a window from scratch at every step
    needs_unit_scale  its settings are absolute: scale the data to mean |entry| ≈ 1 first
    robust            models outliers
    requires          a package it needs beyond the core, or None
    citation          where it comes from
    """

    name: str
    init: Callable[[Any, tuple[int, ...]], Any]
    step: Callable[..., tuple[Any, BaselineResult]]
    Config: type[Any]
    citation: str
    missing: bool = True
    orders: tuple[int, int | None] = (1, None)
    batch: bool = False
    needs_unit_scale: bool = True
    robust: bool = False
    requires: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def any_order(self) -> bool:
        """Takes slices of every order."""
        return self.orders == (1, None)

    @property
    def knobs(self) -> tuple[str, ...]:
        """Names that `configure` takes."""
        return tuple(knob.name for knob in fields(self.Config))

    def configure(self, **knobs: Any) -> Any:
        """A Config of this entry; unknown names are refused with the list of the known ones."""
        unknown = sorted(set(knobs) - set(self.knobs))
        if unknown:
            raise TypeError(f"{self.name} has no knob {', '.join(unknown)}; it has {', '.join(self.knobs)}.")
        return self.Config(**{**self.defaults, **knobs})


_NAIVE = "no model"
_KASAI = "H. Kasai, ICASSP 2016; Neurocomputing 347, 2019"
_TENSORLY = "J. Kossaifi et al., JMLR 20(26), 2019"


_METHODS = (
    Method(
        "last_value", naive.init, naive.step, naive.Config, _NAIVE, needs_unit_scale=False, defaults={"kind": "last"}
    ),
    Method(
        "moving_mean",
        naive.init,
        naive.step,
        naive.Config,
        _NAIVE,
        needs_unit_scale=False,
        defaults={"kind": "mean"},
    ),
    Method(
        "running_median",
        naive.init,
        naive.step,
        naive.Config,
        _NAIVE,
        needs_unit_scale=False,
        defaults={"kind": "median"},
    ),
    Method(
        "online_cp",
        online_cp.init,
        online_cp.step,
        online_cp.Config,
        "S. Zhou et al., KDD 2016",
        missing=False,
        needs_unit_scale=False,
    ),
    Method(
        "online_sgd",
        online_sgd.init,
        online_sgd.step,
        online_sgd.Config,
        "M. Mardani, G. Mateos, G. B. Giannakis, IEEE Trans. Signal Process. 63(10), 2015",
    ),
    Method("olstec", olstec.init, olstec.step, olstec.Config, _KASAI),
    Method(
        "olstec_truncated",
        olstec.init,
        olstec.step,
        olstec.Config,
        _KASAI,
        defaults={"window": 10},
    ),
    Method(
        "brtf",
        brtf.init,
        brtf.step,
        brtf.Config,
        "Q. Zhao et al., IEEE Trans. Neural Netw. Learn. Syst. 27(4), 2016",
        batch=True,
        robust=True,
    ),
    Method(
        "grasta",
        grasta.init,
        grasta.step,
        grasta.Config,
        "J. He, L. Balzano, A. Szlam, CVPR 2012",
        needs_unit_scale=False,
        robust=True,
    ),
    Method(
        "grasta_trained",
        grasta.init,
        grasta.step,
        grasta.Config,
        "J. He, L. Balzano, A. Szlam, CVPR 2012, video experiments",
        needs_unit_scale=False,
        robust=True,
        defaults={"training_slices": 10, "constant_step": 0.01},
    ),
    Method(
        "sofia",
        sofia.init,
        sofia.step,
        sofia.Config,
        "D. Lee, K. Shin, ICDE 2021",
        robust=True,
    ),
    Method(
        "tensorly_robust_pca",
        tensorly_window.init,
        tensorly_window.step,
        tensorly_window.Config,
        _TENSORLY,
        batch=True,
        robust=True,
        requires="tensorly",
        defaults={"kind": "robust_pca"},
    ),
    Method(
        "tensorly_masked_cp",
        tensorly_window.init,
        tensorly_window.step,
        tensorly_window.Config,
        _TENSORLY,
        batch=True,
        needs_unit_scale=False,
        requires="tensorly",
        defaults={"kind": "masked_cp"},
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _METHODS}


def method(name: str) -> Method:
    """The entry of that name; an unknown name is answered with the known ones."""
    if name not in METHODS:
        raise KeyError(f"unknown baseline {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]
