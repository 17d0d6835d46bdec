import json
from dataclasses import replace

import numpy as np
import pytest

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.making import from_recording
from undertow.lab.figures import figure as figures
from undertow.lab.figures.figure import Panel, PaperFigure
from undertow.lab.figures.make import make_figures
from undertow.lab.figures.registry import FIGURES, chosen
from undertow.lab.methods import NAIVE
from undertow.lab.pages.gallery import write_gallery
from undertow.lab.reporter import Silent
from undertow.lab.scores import SCORES


def film(condition, seed, size, folder):
    picture = np.random.default_rng(1).uniform(0, 255, (size.slices, 8, 9, 4))
    return from_recording(picture, condition, seed, size.burn_in, pictures=True)


def absent(*arguments):
    raise FileNotFoundError("x.mat is expected at /there")


@pytest.fixture
def little(tiny, monkeypatch):
    """Two little figures and one without its data, under names of real ones so that the gallery knows them."""
    datasets = {
        "drifting": replace(tiny, name="drifting"),
        "pincat": replace(tiny, name="pincat", make=film, recorded=True),
        "abilene": replace(tiny, name="abilene", make=absent, recorded=True),
    }
    monkeypatch.setattr(figures, "DATASETS", datasets)
    curve = Panel("a panel", "drifting", Condition(0.6, 0.1), ("olstec",), "hidden_error")
    ranks = replace(curve, shows="rank")
    picture = Panel("a film", "pincat", Condition(0.5), (), "hidden_error", frames=(5, 7), quick={"slices": 6})
    lost = replace(curve, dataset="abilene")
    return [
        PaperFigure("rank", "Rank", "Rank & error.", "Nothing.", "curves", (ranks, curve), "Short."),
        PaperFigure("mri", "Film", "A film.", "Nothing.", "pictures", (picture,), "Short.", seeds=1),
        PaperFigure("abilene-completion", "Lost", "Lost.", "Nothing.", "curves", (lost,), "Short."),
    ]


@pytest.mark.slow
def test_pictures_numbers_and_one_page(little, tmp_path):
    reporter = Silent()
    made = make_figures(little, tmp_path, reporter, seeds=2)
    assert [figure["name"] for figure in made] == ["rank", "mri"]
    assert set(reporter.sentences) == {"x.mat is expected at /there"}
    for figure in made:
        assert (tmp_path / f"{figure['name']}.png").read_bytes().startswith(b"\x89PNG")
        assert json.loads((tmp_path / f"{figure['name']}.json").read_text()) == figure
    methods = made[0]["panels"][1]["methods"]
    assert list(methods) == ["olstec", *NAIVE]
    assert methods["olstec"]["scores"]["hidden_error"] > 0
    assert len(methods["olstec"]["seeds"]) == 2
    html = write_gallery(tmp_path).read_text()
    assert html.count("data:image/png;base64,") == 2
    assert "Rank &amp; error." in html
    assert "Where this differs." in html


@pytest.mark.slow
def test_a_name_run_alone_joins_the_page(little, tmp_path):
    make_figures(little[:1], tmp_path, Silent(), quick=True)
    make_figures(little[1:2], tmp_path, Silent(), quick=True)
    html = write_gallery(tmp_path).read_text()
    assert 'id="rank"' in html
    assert 'id="mri"' in html
    assert "Short." in html


def test_every_figure_is_complete():
    for figure in FIGURES.values():
        assert figure.differs
        assert figure.caption
        for panel in figure.panels:
            assert panel.dataset in DATASETS
            assert panel.shows in SCORES
            assert {"undertow", "undertow_paper", *NAIVE} <= {method.name for method in panel.drawn}
            for quick in (True, False):
                size = panel.case(0, quick, None).identity["size"]
                assert size["burn_in"] < size["slices"]
                assert all(t < size["slices"] for t in panel.frames_of(quick))
                if figure.kind == "pictures":
                    assert panel.frames_of(quick)


def test_unknown_figures_list_the_known_ones():
    assert chosen([]) == chosen(["all"]) == list(FIGURES.values())
    with pytest.raises(ValueError, match="unknown figure mir: choose from synthetic-factorization"):
        chosen(["mir"])
