"""Notebooks say what the tutorials say; their code runs, as that of the tutorials does, and shows pictures."""

import base64
import importlib.util
import json
import re

import pytest
from pages import ROOT, blocks

_specification = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
notebooks = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(notebooks)
LARGEST = 400_000
"""Bytes of a notebook with its outputs."""


def committed(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())


def code_of(found):
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def kinds(found):
    """Of the outputs of every cell."""
    return [[sorted(output.get("data", {"printed": 0})) for output in cell["outputs"]] for cell in code_of(found)]


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_are_up_to_date(name):
    found = committed(name)
    for cell in code_of(found):
        cell |= {"execution_count": None, "outputs": []}
    assert found == notebooks.notebook(name), "run make notebooks"


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_show_what_their_cells_print_and_draw(name):
    found = committed(name)
    for cell in code_of(found):
        assert any("text" in output for output in cell["outputs"]) == ("print(" in cell["source"])
    outputs = [output for cell in code_of(found) for output in cell["outputs"]]
    (picture,) = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert base64.b64decode(picture)[:4] == b"\x89PNG"
    text = (ROOT / "notebooks" / f"{name}.ipynb").read_text()
    assert len(text) < LARGEST
    assert not re.search(r"/(tmp|home|root|work|Users)/", "".join(map(json.dumps, found["cells"])))


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_have_all_of_the_code(name):
    code = [cell["source"] for cell in code_of(notebooks.notebook(name))]
    wanted = [text for kind, text in blocks(ROOT / "docs" / "tutorials" / f"{name}.md") if kind == "python"]
    assert [text.splitlines()[0].split(".savefig")[0] for text in wanted] == [text.splitlines()[0] for text in code]
    for text in code:
        compile(text, name, "exec")
        assert "savefig" not in text


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_have_nothing_that_only_the_site_shows(name):
    assert not re.search(r"^(!!!|!\[|:::)", "\n".join(map(text_of, notebooks.notebook(name)["cells"])), re.MULTILINE)


def text_of(cell):
    return cell["source"] if cell["cell_type"] == "markdown" else ""


def test_a_cell_shows_what_it_prints_and_its_last_line():
    cells = [{"cell_type": "code", "source": source} for source in ("a = 2\nprint(a)\na + 1", "a = 5", "{a: None}")]
    first, second, third = code_of(notebooks.run({"cells": cells}))
    assert [output.get("text", output.get("data")) for output in first["outputs"]] == ["2\n", {"text/plain": "3"}]
    assert second["outputs"] == []
    assert third["execution_count"] == third["outputs"][0]["execution_count"] == 3
    assert third["outputs"][0]["data"] == {"text/plain": "{5: None}"}


@pytest.mark.full
@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_run_and_show_what_is_committed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kinds(notebooks.run(notebooks.notebook(name))) == kinds(committed(name))
