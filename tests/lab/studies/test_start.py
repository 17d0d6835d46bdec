import pytest

from undertow.lab.studies import start


@pytest.mark.slow
def test_only_the_first_process_compiles(monkeypatch):
    small = "import undertow\nmodel = undertow.RobustCP(max_rank=3, window=4)"
    lines = "from undertow.runs.default_model import default_model\nmodel = default_model()"
    assert lines in start.CHILD
    monkeypatch.setattr(start, "CHILD", start.CHILD.replace(lines, small))
    said = []
    first, second = start.start((6, 5), repeats=1, say=said.append)
    assert first["compiled"] > 0
    assert second["compiled"] == 0
    assert second["processor"] < first["processor"]
    assert first["together"] == pytest.approx(first["imported"] + first["first"])
    assert said[0].startswith("nothing kept")
    assert said[1].startswith("kept, process 1")
