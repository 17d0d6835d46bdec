"""Undertow: robust Bayesian factorization and completion of streaming tensors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undertow.checkpoint import CheckpointError
    from undertow.entries import Entries
    from undertow.estimator import FactorMatrices, RobustCP, load
    from undertow.fleet import Fleet
    from undertow.fleet_result import FleetResult
    from undertow.functional import State, init, step
    from undertow.loop import run
    from undertow.model.config import Config, make_config
    from undertow.result import Estimate, Status, StepResult
    from undertow.slices import Slice, as_slice
    from undertow.streams.opening import open_stream
    from undertow.streams.stream import StreamError

__version__ = "0.1.0"

_HOMES = {
    "CheckpointError": "checkpoint",
    "Config": "model.config",
    "Entries": "entries",
    "Estimate": "result",
    "FactorMatrices": "estimator",
    "Fleet": "fleet",
    "FleetResult": "fleet_result",
    "RobustCP": "estimator",
    "Slice": "slices",
    "State": "functional",
    "Status": "result",
    "StepResult": "result",
    "StreamError": "streams.stream",
    "as_slice": "slices",
    "init": "functional",
    "load": "estimator",
    "make_config": "model.config",
    "open_stream": "streams.opening",
    "run": "loop",
    "step": "functional",
}
"""Where each public name lives. Imported on first use: `undertow --help` must not wait for jax."""

__all__ = [
    "CheckpointError",
    "Config",
    "Entries",
    "Estimate",
    "FactorMatrices",
    "Fleet",
    "FleetResult",
    "RobustCP",
    "Slice",
    "State",
    "Status",
    "StepResult",
    "StreamError",
    "__version__",
    "as_slice",
    "init",
    "load",
    "make_config",
    "open_stream",
    "run",
    "step",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'undertow' has no attribute {name!r}")
    return getattr(import_module(f"undertow.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
