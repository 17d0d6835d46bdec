"""What `inspect` finds is what a run stumbles over, in the same words; what they advise goes on with resume."""

import json
from contextlib import closing

import numpy as np
import pytest
from stubs import StubModel, load_stub

from undertow.cli import main
from undertow.runs import RunError, run
from undertow.runs.store.times import Times
from undertow.sources import StreamError, open_stream
from undertow.sources.describe import describe

TABLE = {"time": "t", "modes": "site", "value": "x"}
NAMES = ("a", "b")


def rows(*changed):
    """A long table of 30 times; some of its rows are others."""
    lines = [f"{t},{site},{t + 0.5}" for t in range(30) for site in NAMES]
    for number, line in changed:
        lines[number] = line
    return "t,site,x\n" + "\n".join(lines) + "\n"


def slices(*changed):
    """JSON lines of 30 slices; some of them are others."""
    made = [{"time": t, "values": [[t + 0.5, 1.0], [2.0, 3.0]]} for t in range(30)]
    for number, other in changed:
        made[number] = made[number] | other
    return "\n".join(map(json.dumps, made)) + "\n"


TROUBLES = {
    # name: file, its text, options of reading, and with which others a run goes on
    "a value that is no number": ("l.csv", rows((41, "20,b,broken")), TABLE, {"on_bad": "skip"}),
    "a row that is too short": ("l.csv", rows((41, "20,b")), TABLE, {"on_bad": "skip"}),
    "two rows for one entry": ("l.csv", rows((41, "20,a,7")), TABLE, {"duplicates": "sum"}),
    "a label that is not expected": (
        "l.csv",
        rows((41, "20,c,7")),
        TABLE | {"labels": {"site": NAMES}},
        {"on_bad": "skip"},
    ),
    "an infinite value": ("s.jsonl", slices((20, {"values": [[float("inf"), 1], [2, 3]]})), {}, {"on_bad": "skip"}),
    "another shape": ("s.jsonl", slices((20, {"values": [[1, 2, 3]]})), {}, {"on_bad": "skip"}),
    "text among numbers": ("s.jsonl", slices((20, {"values": [["x", 1], [2, 3]]})), {}, {"on_bad": "skip"}),
    "a time of another kind": ("s.jsonl", slices((20, {"time": "noon"})), {}, {"on_bad": "skip"}),
    "a time beyond 64 bits": ("s.jsonl", slices((20, {"time": 2**64})), {}, {"on_bad": "skip"}),
    "a time that is late": ("s.jsonl", slices((20, {"time": 3})), {"late": "refuse"}, {"late": "skip"}),
    "a gap": (
        "s.jsonl",
        slices(*((number, {"time": number + 5}) for number in range(20, 30))),
        {"gaps": "refuse", "step": 1},
        {"gaps": "keep"},
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_inspect_finds_it_and_the_advice_goes_on(tmp_path, trouble):
    name, text, reading, remedy = TROUBLES[trouble]
    path = tmp_path / name
    path.write_text(text)

    def attempt(**more):
        on_bad = more.pop("on_bad", "stop")
        with closing(open_stream(path, **reading | more, on_bad=on_bad)) as stream:
            return run(stream, StubModel(), store=tmp_path / "s", resume=True, load=load_stub, on_bad=on_bad)

    try:
        found = describe(path, check=Times.checked(), **reading)["trouble"]
    except StreamError as error:
        found = str(error)
    with pytest.raises((RunError, StreamError)) as stopped:
        attempt()
    assert found is not None
    assert found.rstrip(".") in str(stopped.value)
    summary = attempt(**remedy)
    assert summary.complete
    assert summary.slices >= 29
    again = {**reading, **remedy}
    assert describe(path, **again)["trouble"] is None or trouble.startswith("a time")  # its kind is the store's matter


def test_a_source_without_trouble_has_none(tmp_path):
    (tmp_path / "l.csv").write_text(rows())
    assert describe(tmp_path / "l.csv", check=Times.checked())["trouble"] is None


def test_the_command_shows_it(tmp_path, capsys):
    (tmp_path / "s.jsonl").write_text(slices((20, {"time": "noon"})))
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(tmp_path / "s.jsonl"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert told["slices_read"] == 20
    assert "the time of slice 20 is 'noon'" in told["trouble"]
    assert "--on-bad skip" in told["trouble"]


def test_only_so_much_is_read():
    assert describe(np.zeros((50, 2, 2)), seconds=0)["slices_read"] == 1
