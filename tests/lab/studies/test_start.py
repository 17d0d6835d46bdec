import pytest

from undertow.lab.studies import start


@pytest.mark.slow
def test_only_the_first_process_compiles(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "CHILD", start.CHILD.replace("RobustCP()", "RobustCP(max_rank=3, window=4)"))
    said = []
    first, second = start.start((6, 5), repeats=1, say=said.append)
    assert first["compiled"] > 0
    assert second["compiled"] == 0
    assert second["processor"] < first["processor"]
    assert first["together"] == pytest.approx(first["imported"] + first["first"])
    assert said[0].startswith("nothing kept")
    assert said[1].startswith("kept, process 1")
