"""A kept result must not outlive the code that made it."""

import json
import shutil
import subprocess
import sys

import pytest

from undertow.lab.methods import ALL_METHODS
from undertow.lab.provenance import PACKAGE, digest, provenance, sources


@pytest.fixture(scope="module")
def loaded():
    """Files of the package that a process has loaded once it has imported the estimator."""
    code = (
        "import json, sys, undertow.estimator;"
        "print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'undertow']))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


@pytest.mark.slow
def test_every_file_that_undertow_loads_counts(loaded):
    """Fails for a list written by hand: the one before this missed `config.py`, where the presets are, and two more."""
    counted = set(map(str, sources(["undertow.estimator"])))
    assert str(PACKAGE / "config.py") in counted
    assert set(loaded) <= counted


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, and the digest of what the estimator runs there."""
    ignored = shutil.ignore_patterns("__pycache__")
    copy = shutil.copytree(PACKAGE, tmp_path_factory.mktemp("copy") / "undertow", ignore=ignored)
    return copy, digest(sources(["undertow.estimator"], copy))


@pytest.mark.parametrize(
    ("part", "same"),
    [
        ("config.py", False),
        ("inputs/dense.py", False),
        ("model/step.py", False),
        ("estimator.py", False),
        ("cli/app.py", True),  # commands are not part of a method
    ],
)
def test_a_change_anywhere_below_makes_another_key(copied, part, same):
    copy, before = copied
    text = (copy / part).read_text()
    (copy / part).write_text(text + "\n# changed\n")
    assert (digest(sources(["undertow.estimator"], copy)) == before) == same
    (copy / part).write_text(text)


def test_a_baseline_depends_on_itself_and_on_what_it_imports_only():
    names = {path.name for path in sources([ALL_METHODS["sofia"].module])}
    assert {"sofia.py", "sofia_start.py", "holt_winters.py", "cp.py", "validation.py", "dense.py"} <= names
    assert not names & {"olstec.py", "registry.py", "estimator.py", "step.py"}
    assert provenance(ALL_METHODS["sofia"].module)["method_code"] != provenance("undertow.estimator")["method_code"]


def test_cases_and_scores_count_for_every_method():
    shared = sources(["undertow.lab.evaluate", "undertow.lab.cases.registry"], within="undertow.lab")
    names = {path.name for path in shared}
    assert {"scores.py", "track.py", "metrics.py", "making.py", "abilene.py", "streams.py", "methods.py"} <= names


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not(tmp_path):
    package = tmp_path / "undertow"
    package.mkdir()
    for name in ("__init__", "late", "types_only"):
        (package / f"{name}.py").touch()
    (package / "early.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from undertow import types_only\n"
        "def f():\n    from undertow.late import g\n"
    )
    assert [path.name for path in sources(["undertow.early"], package)] == ["__init__.py", "early.py", "late.py"]
