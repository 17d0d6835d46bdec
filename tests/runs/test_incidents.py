"""Incidents of a run: in the store, in checkpoints, in the summary, delivered; exact across kills."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from innovations import Drawn, load_drawn
from stubs import StubStream, differing_files, everything_in, minute

from undertow.cli.app import run as cli
from undertow.runs import RunError, run
from undertow.runs.store import feedback
from undertow.runs.store.incidents import FILE, read_incidents
from undertow.runs.store.reader import open_store


def run_drawn(folder, stream=None, **options):
    stream = stream or StubStream(100, times=minute)
    return run(stream, Drawn(), store=folder, load=load_drawn, **{"keep": "none", "checkpoint_every": 16, **options})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "store"
    return folder, run_drawn(folder)


def test_incidents_are_in_the_store_and_the_summary(whole):
    folder, summary = whole
    told = open_store(folder).incidents()
    assert [(one["kind"], one["since"], one["until"]) for one in told] == [
        ("row", 60, 69),
        ("entry", 85, 85),
        ("entry", 99, None),
    ]
    assert (summary.incidents, summary.open_incidents) == (3, 1)
    assert summary.newest_incidents[0].startswith("site b: up to")
    assert "from 2024-05-01T01:00 to 2024-05-01T01:09" in summary.newest_incidents[0]


@pytest.mark.parametrize("at", [62, 71, 86])
def test_a_run_that_is_stopped_goes_on_byte_for_byte(whole, tmp_path, at):
    folder = tmp_path / "store"
    broken = StubStream(100, times=minute, fail_at=at, error=OSError("gone"))
    with pytest.raises(RunError):
        run_drawn(folder, broken)
    run_drawn(folder, resume=True)
    assert differing_files(folder, everything_in(whole[0])) == set()


def test_each_is_delivered_once_when_it_opens_and_when_it_closes_whatever_stops_the_run(tmp_path):
    told = tmp_path / "told.jsonl"
    for at in (61, 63, 66, 75, 87):
        broken = StubStream(100, times=minute, fail_at=at, error=OSError("gone"))
        with pytest.raises(RunError):
            run_drawn(tmp_path / "store", broken, deliver=[str(told)], resume=True, checkpoint_every=50)
        # as after a kill: the checkpoint that the orderly end wrote is gone
        newest = sorted((tmp_path / "store" / ".undertow").glob("checkpoint-*"))[-1]
        if len(list(newest.parent.glob("checkpoint-*"))) > 1:
            newest.unlink()
    run_drawn(tmp_path / "store", deliver=[str(told)], resume=True, checkpoint_every=50)
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    assert [(one["what"], one["incident"]["id"]) for one in lines] == [
        ("opened", 1),
        ("closed", 1),
        ("opened", 2),
        ("closed", 2),
        ("opened", 3),
    ]


class Silent(StubStream):
    """From slice 50 on nothing comes from site b."""

    def slices(self, position=None):
        for item in super().slices(position):
            values = np.ones(self.shape) * item.position["next"]
            values[1] = np.nan if item.position["next"] > 50 else values[1]
            yield replace(item, values=values)


class Listens(Drawn):
    def update(self, x):
        made = super().update(x)
        return SimpleNamespace(**{**vars(made), "innovations": np.where(np.isnan(x), np.nan, made.innovations)})


def test_a_sensor_that_falls_silent_is_one(tmp_path):
    stream = Silent(75, times=minute)
    summary = run(stream, Listens(), store=tmp_path / "store", load=load_drawn, keep="none", slice_seconds=60)
    (told,) = [one for one in open_store(tmp_path / "store").incidents() if one["kind"] == "silent"]
    assert told["sentence"] == "site b: silent since 2024-05-01T00:50"
    assert (told["count"], told["open"]) == (4, True)
    assert summary.newest_incidents[0] == told["sentence"]


def test_none_are_kept_where_none_are_wanted(tmp_path):
    summary = run_drawn(tmp_path / "store", false_alarms=None)
    assert summary.incidents == 0
    assert not (tmp_path / "store" / FILE).exists()
    assert open_store(tmp_path / "store").incidents() == []


def test_resuming_keeps_the_rate_unless_another_is_asked_for(tmp_path):
    folder = tmp_path / "store"
    run_drawn(folder, limit=20, false_alarms="1/day")
    run_drawn(folder, limit=40, resume=True)
    with pytest.raises(RunError, match="false_alarms"):
        run_drawn(folder, limit=60, resume=True, false_alarms="2/day")


def test_a_rate_in_time_needs_dates_or_a_step(tmp_path):
    with pytest.raises(RunError, match="give times"):
        run_drawn(tmp_path / "a", StubStream(100), false_alarms="1/day")
    run_drawn(tmp_path / "b", StubStream(100), false_alarms="1/day", slice_seconds=60, limit=5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"false_alarms": "often"}, "false_alarms must be"),
        ({"slice_seconds": 0}, "slice_seconds must be"),
        ({"deliver": ["ftp://x"]}, "deliver must be"),
        ({"deliver": ["x.jsonl"], "false_alarms": None}, "deliver is for incidents"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path, options, sentence):
    with pytest.raises(RunError, match=sentence):
        run_drawn(tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / FILE).write_text('{"id": 1}\nnonsense\n{"id": 2}\n')
    with pytest.raises(ValueError, match="damaged at line 2"):
        read_incidents(tmp_path)
    (tmp_path / FILE).write_text('{"id": 1}\n{"id"')
    assert [one["id"] for one in read_incidents(tmp_path)] == [1]


def answered(folder):
    """A run of 90 slices after which somebody says that the spike at 85 was a false alarm."""
    run_drawn(folder, limit=90)
    assert cli(["incidents", str(folder), "--false-alarm", "2"]) == 0


@pytest.mark.slow
def test_the_same_is_not_an_incident_again_after_it_was_called_a_false_alarm(tmp_path, capsys):
    folder = tmp_path / "store"
    answered(folder)
    shown = capsys.readouterr().out
    assert "site c" in shown
    assert shown.count("false alarm") == 1
    assert [one["false_alarm"] for one in open_store(folder).incidents()] == [None, True]
    run_drawn(folder, resume=True, limit=100)
    assert [one["false_alarm"] for one in open_store(folder).incidents()] == [None, True]  # none at 99
    assert cli(["incidents", str(folder), "--real", "2", "--json"]) == 0
    assert [one["false_alarm"] for one in json.loads(capsys.readouterr().out)] == [None, False]
    run_drawn(folder, resume=True, overwrite=False)
    assert cli(["incidents", str(folder), "--false-alarm", "7"]) == 2
    assert "has no incident 7: undertow incidents" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_said_is_heard_once_whatever_stops_the_run(tmp_path):
    for folder in (tmp_path / "calm", tmp_path / "killed"):
        answered(folder)
    run_drawn(tmp_path / "calm", resume=True)
    for at in (92, 97):
        with pytest.raises(RunError):
            run_drawn(
                tmp_path / "killed", StubStream(100, times=minute, fail_at=at, error=OSError("gone")), resume=True
            )
        newest = sorted((tmp_path / "killed" / ".undertow").glob("checkpoint-*"))[-1]
        newest.unlink()  # as after a kill
    run_drawn(tmp_path / "killed", resume=True)
    assert differing_files(tmp_path / "killed", everything_in(tmp_path / "calm")) == set()


def test_an_answer_about_what_is_long_forgotten_is_said_and_changes_nothing(tmp_path):
    run_drawn(tmp_path / "store", limit=90)
    feedback.add_feedback(tmp_path / "store", 50, True)
    summary = run_drawn(tmp_path / "store", resume=True)
    assert any("incident 50 is too long ago" in one for one in summary.notices)
    assert [one["false_alarm"] for one in open_store(tmp_path / "store").incidents()] == [None] * 3


def test_a_run_that_starts_anew_has_heard_nothing(tmp_path):
    answered(tmp_path / "store")
    run_drawn(tmp_path / "store", overwrite=True)
    assert [one["false_alarm"] for one in open_store(tmp_path / "store").incidents()] == [None] * 3


def test_an_answer_that_was_half_written_is_not_there(tmp_path):
    answered(tmp_path / "store")
    path = tmp_path / "store" / ".undertow" / feedback.FILE
    path.write_bytes(path.read_bytes() + b'{"id": 1, "fal')
    assert feedback.read_feedback(tmp_path / "store") == [(2, True)]
    feedback.add_feedback(tmp_path / "store", 1, True)
    assert feedback.read_feedback(tmp_path / "store") == [(2, True), (1, True)]
