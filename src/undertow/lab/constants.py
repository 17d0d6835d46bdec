"""The package with other values of its constants, for as long as a trial takes: what an ablation of heuristics needs.

A constant is named by module and name, `tracker.law.FORGETTING`; one of `undertow.model.defaults` by its name alone.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import undertow
from undertow.lab.names import pick
from undertow.programs.program import forget_all

DEFAULTS = "model.defaults"
"""Where constants are that are named without a module."""


def apart(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of a model, and constants, whose names are in capitals."""
    constants = {name: value for name, value in settings.items() if name.rpartition(".")[2].isupper()}
    for name in constants:
        holders(name)
    return {name: value for name, value in settings.items() if name not in constants}, constants


def holders(constant: str) -> list[tuple[ModuleType, str]]:
    """The modules that have a constant, and its name there: its own first, then those that import it from there.

    Raises:
        ValueError: There is none of that name, or it is used while a module is imported: what was made of it then
            would keep its value.
    """
    module, _, name = constant.rpartition(".")
    home = f"undertow.{module or DEFAULTS}"
    try:
        known = dict.fromkeys(_assigned(_tree(Path(importlib.import_module(home).__file__ or ""))))
    except ImportError:
        raise ValueError(
            f"unknown module {home} of the constant {constant}: write for example tracker.law.FORGETTING"
        ) from None
    pick("constant", [name], known)
    found = []
    root = Path(undertow.__file__).parent
    for path in sorted(root.rglob("*.py")):
        own = ".".join(("undertow", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        if name in text:
            tree = ast.parse(text)
            for called in [name] if own == home else _imported(tree, home, name):
                if called in _read_at_import(tree):
                    raise ValueError(
                        f"{constant} is used while {own} is imported, so another value would change nothing or half of "
                        "what it is for: replace what is made of it"
                    )
                found.append((importlib.import_module(own), called))
    return sorted(found, key=lambda one: one[0].__name__ != home)


@contextmanager
def replaced(constants: Mapping[str, Any]) -> Iterator[None]:
    """While it lasts, every module has these values, and no program is kept or taken from those that were."""
    if not constants:
        yield
        return
    places = {(module, name): value for one, value in constants.items() for module, name in holders(one)}
    before = {(module, name): getattr(module, name) for module, name in places}
    cache = os.environ.get("UNDERTOW_CACHE")
    os.environ["UNDERTOW_CACHE"] = "off"
    try:
        _set({place: _like(before[place], value) for place, value in places.items()})
        yield
    finally:
        _set(before)
        if cache is None:
            del os.environ["UNDERTOW_CACHE"]
        else:
            os.environ["UNDERTOW_CACHE"] = cache


def _set(values: Mapping[tuple[ModuleType, str], Any]) -> None:
    for (module, name), value in values.items():
        setattr(module, name, value)
    forget_all()
    jax.clear_caches()  # type: ignore[no-untyped-call]


def _like(before: Any, value: Any) -> Any:
    """A value that was read from JSON as what it replaces."""
    if isinstance(before, np.ndarray):
        return np.asarray(value, before.dtype)
    return tuple(value) if isinstance(before, tuple) else value


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _assigned(tree: ast.Module) -> list[str]:
    """Names in capitals that a module gives a value."""
    targets = (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)] for node in tree.body)
    names = (node for one in targets for target in one for node in ast.walk(target) if isinstance(target, ast.expr))
    return [node.id for node in names if isinstance(node, ast.Name) and node.id.isupper()]


def _imported(tree: ast.Module, home: str, name: str) -> list[str]:
    """What a constant of another module is called in this one, if it is imported."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == home)
    return [alias.asname or alias.name for node in imports for alias in node.names if alias.name == name]


def _read_at_import(node: ast.AST) -> set[str]:
    """Names that are read outside functions: by other constants, classes, decorators and default values."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    inside: Iterator[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inside = iter([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
    elif isinstance(node, ast.Lambda):
        inside = iter(node.args.defaults)
    return set().union(*map(_read_at_import, inside))
