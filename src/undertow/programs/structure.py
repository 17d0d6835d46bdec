"""What a program returns, written down without pickle: its tuples, dictionaries and dataclasses, and its arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any

import jax

_PLAIN = (str, int, float, bool)


@dataclass(frozen=True)
class Outline:
    """What is known of a program besides its code: its results, and what it needs.

    Attributes:
        tree: How they are nested.
        arrays: Shape, type and weakness of the type of each array.
        calls: Routines that it calls and does not hold, such as LAPACK's; they have to be there before it runs.
    """

    tree: Any
    arrays: tuple[tuple[tuple[int, ...], str, bool], ...]
    calls: tuple[str, ...] = ()


class _Array:
    """Stands where an array is."""


def packed(outline: Outline, executable: bytes) -> bytes:
    """Outline and executable in one piece. A result that cannot be written down is a TypeError."""
    skeleton = jax.tree.unflatten(outline.tree, [_Array()] * len(outline.arrays))
    nested = _written(skeleton)
    if jax.tree.structure(_read(nested)) != outline.tree:
        raise TypeError("the results do not come back as they were")
    header = json.dumps({"tree": nested, "arrays": outline.arrays, "calls": outline.calls}).encode()
    return len(header).to_bytes(8, "little") + header + executable


def unpacked(stored: bytes) -> tuple[Outline, bytes]:
    """What `packed` put together."""
    end = 8 + int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8:end])
    arrays = tuple((tuple(shape), str(dtype), bool(weak)) for shape, dtype, weak in header["arrays"])
    calls = tuple(map(str, header["calls"]))
    return Outline(jax.tree.structure(_read(header["tree"])), arrays, calls), stored[end:]


def _written(node: Any) -> Any:
    if node is None:
        return None
    if isinstance(node, _Array):
        return {"array": True}
    if type(node) in (tuple, list):
        return {type(node).__name__: [_written(part) for part in node]}
    if type(node) is dict and all(type(key) is str for key in node):
        return {"dict": {key: _written(part) for key, part in node.items()}}
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return {"type": _name(node), "fields": {key: _written(getattr(node, key)) for key in node._fields}}
    if is_dataclass(node):
        return {"type": _name(node), "fields": {one.name: _written(getattr(node, one.name)) for one in fields(node)}}
    if type(node) in _PLAIN:  # a static field
        return {"value": node}
    raise TypeError(f"a {type(node).__name__} is not written down")


def _read(node: Any) -> Any:
    if node is None:
        return None
    if "array" in node:
        return 0
    for kind in (tuple, list):
        if kind.__name__ in node:
            return kind(_read(part) for part in node[kind.__name__])
    if "dict" in node:
        return {key: _read(part) for key, part in node["dict"].items()}
    if "type" in node:
        return _type(node["type"])(**{key: _read(part) for key, part in node["fields"].items()})
    return node["value"]


def _name(node: Any) -> Sequence[str]:
    return [type(node).__module__, type(node).__qualname__]


def _type(name: Sequence[str]) -> Any:
    """A class of this package that holds fields and nothing else."""
    module, qualified = name
    if module.partition(".")[0] != __name__.partition(".")[0]:
        raise TypeError(f"{module}.{qualified} is not a class of this package")
    found = getattr(import_module(module), qualified)
    if not (isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields"))):
        raise TypeError(f"{module}.{qualified} is not a dataclass")
    return found
