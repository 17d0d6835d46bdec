"""Notebooks say what the tutorials say; their code runs, as that of the tutorials does, and shows pictures."""

import importlib.util
import json
import re

import pytest
from pages import ROOT, blocks

_specification = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
notebooks = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(notebooks)


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_are_up_to_date(name):
    assert (ROOT / "notebooks" / f"{name}.ipynb").read_text() == notebooks.written(name), "run make notebooks"


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_have_all_of_the_code_and_no_outputs(name):
    cells = json.loads(notebooks.written(name))["cells"]
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    wanted = [text for kind, text in blocks(ROOT / "docs" / "tutorials" / f"{name}.md") if kind == "python"]
    assert [text.splitlines()[0].split(".savefig")[0] for text in wanted] == [text.splitlines()[0] for text in code]
    assert not any(cell.get("outputs") for cell in cells)
    for text in code:
        compile(text, name, "exec")
        assert "savefig" not in text


@pytest.mark.parametrize("name", notebooks.TUTORIALS)
def test_they_have_nothing_that_only_the_site_shows(name):
    assert not re.search(r"^(!!!|!\[|:::)", "\n".join(map(text_of, notebooks.notebook(name)["cells"])), re.MULTILINE)


def text_of(cell):
    return cell["source"] if cell["cell_type"] == "markdown" else ""


@pytest.mark.full
def test_the_sensors_run_as_a_notebook_and_show_a_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "notebook"}
    for cell in notebooks.notebook("sensors")["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], "sensors.ipynb", "exec"), namespace)
    assert namespace["axes"].figure._repr_png_()[:4] == b"\x89PNG"
