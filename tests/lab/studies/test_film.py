"""A film through a whole run: how it is painted, and one that is small."""

import numpy as np
import pytest
from stubs import StubTracker

from undertow.lab.studies import film as studied
from undertow.lab.studies.film import painted
from undertow.lab.studies.foreground import generated
from undertow.runs import run


def test_colours_are_those_of_the_lamp_and_of_who_walks():
    scene = generated(count=60, shape=(48, 64))
    grey, coloured = painted(scene, False).astype(int), painted(scene, True).astype(int)
    assert (grey == grey[..., :1]).all()
    moving = np.zeros(scene.frames.shape, bool)
    moving[list(scene.known)] = scene.truth
    assert (coloured[~moving][:, 0] >= coloured[~moving][:, 2]).all()
    assert (coloured[moving][:, 0] < coloured[moving][:, 2]).mean() > 0.9


def test_every_film_has_its_row_of_frames_processor_time_alerts_and_f(monkeypatch):
    pytest.importorskip("av")
    monkeypatch.setattr(studied, "run", lambda *given, **how: run(*given, model=StubTracker(), **how))
    table = studied.film((24, 32), 40)
    assert [row[0] for row in table.rows] == ["grey", "colour"]
    for row in table.rows:
        assert len(row) == len(table.headings)
        assert float(row[1]) > 0
        assert int(row[3].replace(",", "")) >= 0
        assert 0 <= float(row[4]) <= 1
