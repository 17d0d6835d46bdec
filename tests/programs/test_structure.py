"""Outlines of results, written down and read."""

import json
from typing import NamedTuple

import jax
import pytest

from undertow.config import make_config
from undertow.engine.state import init
from undertow.programs.structure import Outline, packed, unpacked

ARRAY = ((2, 3), "float32", False)


class Foreign(NamedTuple):
    x: int


def outline(tree):
    leaves, structure = jax.tree.flatten(tree)
    return Outline(structure, (ARRAY,) * len(leaves), ("lapack_spotrf_ffi",))


@pytest.mark.parametrize("settings", [{}, {"level": True}, {"memory": "recursive"}])
def test_a_state_and_its_settings_come_back(settings):
    state = init(make_config(max_rank=3, window=4, **settings), (6, 5))
    there = outline((state.core, state.settings, [None, {"x": 1}], ()))
    assert unpacked(packed(there, b"program")) == (there, b"program")


def test_a_sparse_state_comes_back():
    there = outline(init(make_config(max_rank=3, window=4, noise="shared"), (6, 5), entries=8).core)
    assert unpacked(packed(there, b"")) == (there, b"")


def with_type(module, name):
    """As if somebody had written another type into a file."""
    stored = packed(outline((1,)), b"")
    header = stored[8:].replace(b'{"array": true}', json.dumps({"type": [module, name], "fields": {}}).encode())
    return len(header).to_bytes(8, "little") + header


def test_types_of_others_are_neither_written_nor_read():
    with pytest.raises(TypeError, match="Foreign is not a class of this package"):
        packed(outline(Foreign(1)), b"")
    with pytest.raises(TypeError, match=r"os\._Environ is not a class of this package"):
        unpacked(with_type("os", "_Environ"))
    with pytest.raises(TypeError, match="not a dataclass"):
        unpacked(with_type("undertow.config", "make_config"))
