"""Undertow: robust Bayesian factorization and completion of streaming tensors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undertow.client import AsyncClient, Client
    from undertow.config import Config, make_config
    from undertow.diagnostics import Status
    from undertow.engine.functional import step
    from undertow.engine.state import State, init
    from undertow.estimator import FactorMatrices, RobustCP, from_bytes, load
    from undertow.fleet import Fleet
    from undertow.incidents import Incident, Incidents
    from undertow.inputs.dense import Slice, as_slice
    from undertow.inputs.sparse import Entries
    from undertow.results import Result
    from undertow.runs import run
    from undertow.runs.cleaning import clean
    from undertow.runs.explaining import explain
    from undertow.serialization.container import CheckpointError
    from undertow.sources.base import StreamError
    from undertow.sources.opening import open_stream
    from undertow.tracker.estimator import Tracker

__version__ = "0.1.0"

_HOMES = {
    "AsyncClient": "client",
    "CheckpointError": "serialization.container",
    "Client": "client",
    "Config": "config",
    "Entries": "inputs.sparse",
    "FactorMatrices": "estimator",
    "Fleet": "fleet",
    "Incident": "incidents",
    "Incidents": "incidents",
    "Result": "results",
    "RobustCP": "estimator",
    "Slice": "inputs.dense",
    "State": "engine.state",
    "Status": "diagnostics",
    "StreamError": "sources.base",
    "Tracker": "tracker.estimator",
    "as_slice": "inputs.dense",
    "clean": "runs.cleaning",
    "explain": "runs.explaining",
    "from_bytes": "estimator",
    "init": "engine.state",
    "load": "estimator",
    "make_config": "config",
    "open_stream": "sources.opening",
    "run": "runs",
    "step": "engine.functional",
}
"""Where each public name lives. Imported on first use: `undertow --help` must not wait for jax."""

_MODULES = {"plot": "undertow.plot", "ray": "undertow.cluster.ray", "spark": "undertow.cluster.spark"}
"""Modules by their public names. Those of engines need extras, so `from undertow import *` leaves them alone."""

__all__ = [
    "AsyncClient",
    "CheckpointError",
    "Client",
    "Config",
    "Entries",
    "FactorMatrices",
    "Fleet",
    "Incident",
    "Incidents",
    "Result",
    "RobustCP",
    "Slice",
    "State",
    "Status",
    "StreamError",
    "Tracker",
    "__version__",
    "as_slice",
    "clean",
    "explain",
    "from_bytes",
    "init",
    "load",
    "make_config",
    "open_stream",
    "plot",
    "run",
    "step",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'undertow' has no attribute {name!r}")
    return getattr(import_module(f"undertow.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
