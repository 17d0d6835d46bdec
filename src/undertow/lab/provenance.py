"""Which code a result depends on: found by following imports, never listed by hand.

A kept result may be used again only while the code behind it is unchanged. Python runs what it imports, so the sources
of a method are its module and, from there, every import statement inside the package, also those inside functions.
Nothing has to be run to find them, so the answer is the same in every process and known before a run, unlike
`sys.modules`, which also holds whatever else was loaded. It errs on the safe side: a file that is imported but not used
makes results run again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import undertow

PACKAGE = Path(undertow.__file__).parent
_EVALUATION = ("undertow.lab.evaluate", "undertow.lab.cases.registry")


def sources(modules: Iterable[str], package: Path = PACKAGE, within: str = "undertow", without: str = "") -> list[Path]:
    """The files of these modules and of all that they import, directly or not.

    Packages on the way to a module count, but are not followed: their `__init__` holds re-exports and nothing else.

    Args:
        modules: where to begin, "undertow.estimator".
        package: folder of the package.
        within: only modules of this package are followed.
        without: modules of this package are not.
    """
    found: dict[str, Path] = {}
    followed: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        outside = not _inside(name, within) or (without and _inside(name, without))
        path = None if outside or name in followed else _file(name, package)
        if path is None:
            continue
        followed.add(name)
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            one = ".".join(parts[:count])
            found[one] = _file(one, package) or path
        waiting += _imports(ast.parse(path.read_bytes()), package)
    return [found[name] for name in sorted(found)]


def digest(files: Iterable[Path]) -> str:
    """One short digest of the contents of files."""
    total = hashlib.sha256()
    for path in files:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


@cache
def provenance(method_module: str) -> dict[str, str]:
    """The version, and digests of the sources of a method and of what makes cases and scores.

    Of the evaluation only the lab itself counts, without the other baselines: changing one of them must not make all
    the others run again.
    """
    shared = sources(_EVALUATION, within="undertow.lab", without="undertow.lab.baselines")
    return {
        "version": undertow.__version__,
        "method_code": digest(sources([method_module])),
        "evaluation_code": digest(shared),
    }


def _inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _file(module: str, package: Path) -> Path | None:
    """The file of a module; None for a name inside a module."""
    base = package.joinpath(*module.split(".")[1:])
    candidates = (base.with_suffix(".py"), base / "__init__.py") if base != package else (package / "__init__.py",)
    return next((path for path in candidates if path.is_file()), None)


def _imports(tree: ast.AST, package: Path) -> Iterator[str]:
    """Modules that are imported, by their absolute names; what only type checkers see is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and _inside(node.module, "undertow"):
            for alias in node.names:  # a module of that name, or something inside the module
                name = f"{node.module}.{alias.name}"
                yield name if _file(name, package) else node.module
        yield from _imports(node, package)
