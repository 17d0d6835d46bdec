"""No program of ours calls LAPACK, but for the paper's start: several that do can wait for each other for ever."""

import ast
from pathlib import Path

import numpy as np
import pytest

import undertow as ut
from undertow.programs import runtime
from undertow.programs.program import forget_all

ROOT = Path(ut.__file__).parent
ELSEWHERE = ("lab",)
"""Baselines and studies compile for themselves."""
ALLOWED = {"model/factors/svd_start.py": {"jnp.linalg.eigh"}}
"""With `preset="paper"` only; such programs run one at a time (`runtime`)."""


def routines(source):
    """What a file names of the linear algebra of JAX."""
    names = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module}
    called = {name for name in names if name.startswith(("jnp.linalg.", "jax.scipy.linalg.", "lax.linalg."))}
    return called | {name for name in imported if name.startswith("jax.") and name.endswith("linalg")}


def test_nothing_is_solved_by_lapack():
    found = {}
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT)
        if inside.parts[0] not in ELSEWHERE and (calls := routines(path.read_text(encoding="utf-8"))):
            found[inside.as_posix()] = calls
    assert found == ALLOWED


@pytest.mark.full
@pytest.mark.parametrize(
    "make",
    [
        lambda: ut.Tracker(),
        lambda: ut.RobustCP(max_rank=20),
        lambda: ut.RobustCP(max_rank=3, window=4, level=True),
        lambda: ut.RobustCP("fast", max_rank=3, window=4),
    ],
    ids=["tracker", "many components", "level", "recursive"],
)
def test_programs_as_they_are_lowered(make, monkeypatch, tmp_path):
    """Whatever is compiled for some slices, in a process whose cache is empty."""
    made, lowered_calls = [], runtime.calls

    def noted(lowered):
        made.append(lowered_calls(lowered))
        return made[-1]

    forget_all()
    monkeypatch.setenv("UNDERTOW_CACHE", str(tmp_path / "programs"))
    monkeypatch.setattr(runtime, "calls", noted)
    model, rng = make(), np.random.default_rng(0)
    for _ in range(6):
        result = model.update(rng.normal(size=(24, 23)))
        assert np.isfinite(result.mean).all()
    assert made
    assert not [call for calls in made for call in calls if call.startswith(runtime.LAPACK)]
