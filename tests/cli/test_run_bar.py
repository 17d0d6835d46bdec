"""What a run says while it runs: off a terminal, and where it will take hours."""

import io

import pytest
from rich.console import Console

from undertow.cli import run_bar
from undertow.cli.run_bar import RunBar, duration
from undertow.runs.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(run_bar.time, "monotonic", lambda: now[0])
    return now


def shown(clock, seconds, slices, length):
    """What is written about a run that takes so long for each slice."""
    written = io.StringIO()
    with RunBar(Console(file=written, width=400, force_terminal=False), length) as bar:
        for done in range(1, slices + 1):
            clock[0] += seconds
            bar.show(Progress(done, length, 1 / seconds, 2, 0.5, 0.01, 0))
    return written.getvalue()


def test_off_a_terminal_there_is_a_line_every_ten_seconds_with_the_time_left(clock):
    lines = shown(clock, 1.0, 35, 100).splitlines()
    assert [line.split(" slices")[0] for line in lines] == ["10 of 100", "20 of 100", "30 of 100"]
    assert "1 min 30 s left" in lines[0]


def test_there_is_a_line_while_the_first_slice_is_waited_for(clock):
    written, looks = io.StringIO(), [False, False, True]

    def look(seconds):
        clock[0] += 20
        return looks.pop(0)

    bar = RunBar(Console(file=written, width=400, force_terminal=False), 100)
    bar._over.wait = look
    bar._wait()
    bar._done, looks[:] = 7, [False, True]
    bar._wait()
    assert written.getvalue().splitlines() == [
        "0 of 100 slices, compiling for the first",
        "0 of 100 slices, compiling for the first",
        "7 of 100 slices, the next takes longer",
    ]


def test_a_run_of_hours_is_announced_with_what_would_be_quicker(clock):
    text = shown(clock, 5.0, 40, 10_000)
    assert text.count("this will take about 13 h") == 1
    assert "--model cp --preset fast would be quicker" in text


@pytest.mark.parametrize(("seconds", "length"), [(1.0, 100), (5.0, None)])
def test_others_are_not(clock, seconds, length):
    assert "this will take" not in shown(clock, seconds, 40, length)


def test_durations():
    assert [duration(one) for one in (0.2, 59, 60, 86400)] == ["0.2 s", "59 s", "1 min 0 s", "1 d 0 h"]
