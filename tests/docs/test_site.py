"""The site builds strictly, needs nothing from elsewhere, can be searched, and its reference is complete."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields

import pytest
from pages import ROOT, generated

import undertow
from undertow.config import PRESETS, Config
from undertow.diagnostics import Flags
from undertow.lab.baselines import METHODS


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_needs_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\">\s]+)", page.read_text())
        assert not loaded, f"{page.relative_to(site)} loads {loaded}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("first result takes", "install/"),
        ("--resume", "how-to/runs-and-resume/"),
        ("NOT_CONVERGED", "reference/statuses/"),
        ("outlier_rate_strength", "reference/settings/"),
        ("explicit zeros", "how-to/sparse-slices/"),
        ("over-relaxation", "developers/glossary/"),
        ("--checkpoint-seconds", "reference/cli/"),
        ("partial_fit", "reference/api/"),
    ],
)
def test_search_finds_facts(site, words, page):
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {entry["location"].split("#")[0] for entry in index if words in entry["title"] + entry["text"]}
    assert page in found


@pytest.mark.slow
def test_the_reference_has_every_setting_and_preset():
    page = generated()["reference/settings.md"]
    for field in fields(Config):
        row = re.search(rf"^\| `{field.name}` \|.*\| (.+) \|$", page, re.MULTILINE)
        assert row is not None, field.name
        assert len(row[1]) > 10, f"{field.name} has no meaning"
    assert all(f"`{preset}`" in page for preset in PRESETS)


@pytest.mark.slow
def test_the_reference_has_every_constant_with_what_it_is_for():
    page = generated()["reference/constants.md"]
    rows = re.findall(r"^\| `([A-Z_, ]+)` \| `(.+?)` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 180
    assert not [name for name, _, meaning in rows if len(meaning) < 8]
    for module in ("tracker.law", "tracker.huber", "tracker.predictors.level", "incidents.watch", "engine.history"):
        assert f"### `{module}`" in page
    assert {"OVER_RELAXATION", "LOOSE, TIGHT"} <= {name for name, *_ in rows}


@pytest.mark.slow
def test_the_reference_has_every_status_with_advice():
    page = generated()["reference/statuses.md"]
    for flag in Flags:
        if flag:
            section = re.search(
                rf"^## {flag.name}\n\n(.+)\n\n> (.+)\n\n`status.ok` is (true|false)\.$", page, re.MULTILINE
            )
            assert section is not None, flag.name


@pytest.mark.slow
def test_what_users_look_for_is_found_before_how_it_came_about(site):
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    boost = {entry["location"].split("#")[0]: entry.get("boost", 1) for entry in index}
    assert boost["reference/statuses/"] > boost["how-to/save-and-load/"] > boost["tutorials/sensors/"]
    assert boost["tutorials/sensors/"] > boost["developers/architecture/"]
    assert any(entry["title"] == "DEAD_SENSOR" for entry in index)


def test_the_reference_has_every_public_name():
    page = generated()["reference/api.md"]
    for name in {*undertow.__all__, *undertow.plot.__all__} - {"__version__", "plot"}:
        assert re.search(rf"^::: undertow\.[\w.]+\.{name}$", page, re.MULTILINE), name


def test_the_reference_has_every_command_and_baseline():
    from typer.main import get_command

    from undertow.cli.app import app

    commands = generated()["reference/cli.md"]
    assert all(f"## `undertow {name}`" in commands for name in get_command(app).commands)
    assert all(f"| `{name}` |" in generated()["reference/baselines.md"] for name in METHODS)


def test_the_workflow_tests_the_oldest_jax_that_is_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    floor = next(one.removeprefix("jax>=") for one in project["dependencies"] if one.startswith("jax>="))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f'"=={floor}.0"' in workflow
    versions = re.findall(r"Python :: (3\.\d+)\"", "\n".join(f'{line}"' for line in project["classifiers"]))
    assert all(f'"{version}"' in workflow for version in versions)


def test_every_constant_of_the_model_is_explained():
    rows = re.findall(r"^\| `([A-Z_]+)` \| `.+` \| (.*) \|$", generated()["reference/constants.md"], re.MULTILINE)
    assert len(rows) > 40
    assert [name for name, meaning in rows if len(meaning) < 10] == []


def test_the_citation_is_of_this_version():
    assert f"\nversion: {undertow.__version__}\n" in (ROOT / "CITATION.cff").read_text()
