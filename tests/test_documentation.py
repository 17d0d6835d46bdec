"""Documentation runs: the Python of every page, and every example in a docstring; links lead somewhere."""

import doctest
import re
import sys
from importlib import import_module

import numpy as np
import pages
import pytest
from pages import ROOT

WITH_CODE = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if any(kind == "python" for kind, _ in pages.blocks(page))
    and page.name != "read-files.md"  # tests/sources/test_read_files_page.py makes the files that it names
)
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src").rglob("*.py")
    if ">>> " in path.read_text()
)
LINKED = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")])


def name(page):
    return str(page.relative_to(ROOT))


LONG = (
    "network-traffic.md",
    "forecast.md",
    "other-libraries.md",
    "fleets.md",
    "sparse-slices.md",
    "settings.md",
    "video.md",
    "find-outliers.md",
    "look-at-a-stream.md",
    "large-slices.md",
    "spark.md",
    "ray.md",
)
"""Pages whose code takes tens of seconds: of what they show there are tests of their own."""
ENGINES = {"spark.md": "pyspark", "ray.md": "ray"}
"""Packages without which a page cannot run."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.full] * (page.name in LONG), id=name(page)) for page in WITH_CODE]
)
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    if page.name in ENGINES:
        pytest.importorskip(ENGINES[page.name], reason="this engine is not installed")
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # of workers, wherever they are started
    monkeypatch.chdir(tmp_path)
    pages.run(page)
    if page.name == "ray.md":
        sys.modules["ray"].shutdown()  # other tests start one of their own


@pytest.mark.slow
def test_code_of_the_readme_runs_on_a_small_stream(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    large = "(40, 40), 5"
    assert text.count(large) == 1
    text = text.replace(large, "(6, 5), 2")
    (tmp_path / "README.md").write_text(text)
    monkeypatch.chdir(tmp_path)
    pages.run(tmp_path / "README.md")


@pytest.mark.full
def test_code_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages.run(ROOT / "README.md")


@pytest.mark.slow
def test_code_of_the_page_on_baselines_runs():
    first, *_, skeleton = (code for _, code in pages.blocks(ROOT / "src/undertow/lab/baselines/README.md"))
    exec(compile(first, "README.md", "exec"), {"stream": np.random.default_rng(0).normal(size=(2, 40, 40))})
    assert "def init(" in skeleton  # tests/lab/baselines/test_conformance.py runs it


def test_there_is_code_to_run():
    assert len(WITH_CODE) >= 10
    assert len(WITH_EXAMPLES) >= 5


OF_ENGINES = {"undertow.cluster.ray": "ray", "undertow.cluster.spark": "pyspark"}
"""Modules whose examples need an engine that make full installs."""


@pytest.mark.slow
@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings_run(module, tmp_path, monkeypatch):
    if module in OF_ENGINES:
        pytest.importorskip(OF_ENGINES[module])
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(module.removesuffix(".__init__"))).failed == 0


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        found = (page.parent / target).resolve()
        on_site = found.is_relative_to(ROOT / "docs") and str(found.relative_to(ROOT / "docs")) in pages.generated()
        assert found.exists() or on_site, f"{name(page)} links to {target}, which is not there"
