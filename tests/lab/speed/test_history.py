import json
import threading

import pytest

from undertow.lab.speed.history import append, comparable, read


def test_lines_are_added_and_read_back(tmp_path):
    path = tmp_path / "new" / "history.jsonl"
    assert read(path) == []
    for number in range(3):
        append(path, {"number": number, "device": {"kind": "α" if number else "β"}})
    assert [record["number"] for record in read(path)] == [0, 1, 2]
    assert [record["number"] for record in comparable(read(path), {"kind": "α"})] == [1, 2]


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path):
    path = tmp_path / "history.jsonl"
    append(path, {"number": 0})
    with path.open("a") as file:
        file.write('{"format": 2, "numb')
    append(path, {"number": 1})
    path.write_text(path.read_text() + json.dumps({"format": 99, "number": 2}) + "\n[]\n")
    assert [record["number"] for record in read(path)] == [0, 1]


def test_runs_that_end_together_do_not_mix(tmp_path):
    path = tmp_path / "history.jsonl"
    writers = [
        threading.Thread(target=lambda n=n: [append(path, {"number": n, "text": "x" * 5000}) for _ in range(10)])
        for n in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(record["number"] for record in read(path)) == sorted(list(range(4)) * 10)


def test_what_is_not_a_number_is_refused(tmp_path):
    path = tmp_path / "history.jsonl"
    with pytest.raises(ValueError, match="JSON"):
        append(path, {"seconds": float("nan")})
    assert not path.exists()
