import json

import pytest

from undertow.lab.store import ResultStore, write_json


def test_json_is_written_whole_or_not_at_all(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_fresh_store_reads_only_what_it_wrote(tmp_path):
    key = {"seed": 1}
    ResultStore(tmp_path).put(key, {"scores": 1})
    fresh = ResultStore(tmp_path, fresh=True)
    assert fresh.get(key) is None
    fresh.put(key, {"scores": 2})
    assert fresh.get(key) == ResultStore(tmp_path).get(key) == {"scores": 2}
    assert ResultStore(tmp_path).get({"seed": 2}) is None
