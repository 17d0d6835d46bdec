"""The model with other values of its constants, for as long as a trial takes: what an ablation of heuristics needs."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax

from undertow import model
from undertow.lab.names import pick
from undertow.model import defaults
from undertow.programs.program import forget_all


def apart(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of a model, and constants of `undertow.model.defaults`, whose names are in capitals."""
    constants = {name: value for name, value in settings.items() if name.isupper()}
    known = {name: getattr(defaults, name) for name in dir(defaults) if name.isupper()}
    if constants:
        pick("constant", list(constants), known)
    return {name: value for name, value in settings.items() if name not in constants}, constants


@contextmanager
def replaced(constants: Mapping[str, Any]) -> Iterator[None]:
    """While it lasts, every module has these values, and no program is kept or taken from those that were."""
    if not constants:
        yield
        return
    for module in pkgutil.walk_packages(model.__path__, "undertow.model."):
        importlib.import_module(module.name)  # all that take a constant over when they are imported
    loaded = [module for name, module in sys.modules.items() if name.startswith("undertow.")]
    before = {name: getattr(defaults, name) for name in constants}
    holders = [
        (module, name) for module in loaded for name in constants if vars(module).get(name, module) is before[name]
    ]
    cache = os.environ.get("UNDERTOW_CACHE")
    os.environ["UNDERTOW_CACHE"] = "off"
    try:
        _set(holders, constants)
        yield
    finally:
        _set(holders, before)
        if cache is None:
            del os.environ["UNDERTOW_CACHE"]
        else:
            os.environ["UNDERTOW_CACHE"] = cache


def _set(holders: list[tuple[Any, str]], values: Mapping[str, Any]) -> None:
    for module, name in holders:
        setattr(module, name, values[name])
    forget_all()
    jax.clear_caches()  # type: ignore[no-untyped-call]
