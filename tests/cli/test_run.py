"""``undertow run`` and the commands that read its store: real files, exit codes and messages."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from stubs import HEAR_SIGNALS, StubModel, StubStream, StubTracker, differing_files, everything_in, load_stub

from undertow.cli import main
from undertow.cli.run import ModelOptions, assignments, default_store
from undertow.config import PRESETS
from undertow.runs import run

SMALL = ("--window", "4", "--max-rank", "3")


def call(*arguments):
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    return done.value.code


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def cheap_model(monkeypatch):
    """The stub in place of the model, for tests of what is around it."""

    class Configured(StubModel):
        def __init__(self, settings):
            super().__init__()
            self.settings = settings

        def get_params(self):
            return self.settings

    monkeypatch.setattr(ModelOptions, "model", lambda self, stream: Configured(self.settings()))
    monkeypatch.setattr("undertow.estimator.from_bytes", load_stub)


def values(slices=24):
    draw = np.random.default_rng(3)
    pattern = np.outer(np.arange(1, 7), np.arange(1, 6))
    x = np.stack([pattern * (1 + 0.1 * np.sin(t / 5)) + 0.05 * draw.normal(size=(6, 5)) for t in range(slices)])
    x[draw.random(x.shape) < 0.1] = np.nan
    x[15:16, 2, 2] = 80.0
    return x


@pytest.mark.slow
def test_a_file_goes_through_and_everything_reads_the_store(capsys):
    np.save("x.npy", values())
    assert call("run", "x.npy", *SMALL, "--keep", "mean,outliers,data,std", "--report") == 0
    shown = capsys.readouterr().out
    assert "24 slices" in shown
    assert "x-undertow.zarr" in shown
    found = xr.open_zarr("x-undertow.zarr", chunks=None)
    np.testing.assert_array_equal(found["data"], values().astype(np.float32))
    assert float(abs(found["mean"].isel(time=slice(8, 15)) - found["data"].isel(time=slice(8, 15))).median()) < 0.2
    assert float(found["outliers"][15, 2, 2]) > 50
    alerts = Path("x-undertow.zarr/alerts.csv").read_text().splitlines()
    assert any(line.startswith("15,2,2,80.0,") for line in alerts)
    assert Path("x-undertow-report.html").read_text().startswith("<!doctype html>")
    assert call("inspect", "x-undertow.zarr", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kind"], facts["slices"], facts["shape"], facts["settings"]["window"]) == ("store", 24, [6, 5], 4)
    assert facts["false_alarms"] == "1/1000"
    assert call("inspect", "x-undertow.zarr") == 0
    assert "mean, std, outliers, data" in capsys.readouterr().out
    assert call("report", "x-undertow.zarr", "--out", "r.html", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": "r.html"}
    assert call("export", "x-undertow.zarr", "x.nc", "--json") == 0
    assert json.loads(capsys.readouterr().out)["file"] == "x.nc"
    assert call("export", "x-undertow.zarr", "x.nc") == 2
    assert capsys.readouterr().err == (
        "undertow: x.nc is there already: name another file, or replace it with --overwrite\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("cheap_model")
def test_the_same_command_with_resume_continues(capsys):
    np.save("x.npy", values())
    options = ("run", "x.npy", *SMALL, "--checkpoint-every", "5", "--json")
    assert call(*options, "--store", "whole") == 0
    assert call(*options, "--store", "pieces", "--limit", "9") == 0
    assert call(*options, "--store", "pieces") == 2
    assert call(*options, "--store", "pieces", "--resume", "--window", "5") == 2
    captured = capsys.readouterr()
    messages = captured.err.splitlines()
    assert messages[0].startswith("undertow: pieces holds results already: continue with --resume")
    assert "other values of model settings (window)" in messages[1]
    assert call(*options, "--store", "pieces", "--resume") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["slices"], summary["new_slices"], summary["complete"]) == (24, 15, True)
    assert not differing_files(Path("pieces"), everything_in(Path("whole")))


@pytest.mark.usefixtures("cheap_model")
def test_scripts_are_told_by_the_exit_code():
    np.save("x.npy", values())
    for options, code in (((), 3), (("--limit", "12", "--threshold", "1"), 0)):
        assert call("run", "x.npy", *SMALL, "--exit-code", "--false-alarms", "none", "--overwrite", *options) == code


@pytest.mark.slow
@pytest.mark.usefixtures("cheap_model")
def test_options_from_a_file_and_the_command_line_takes_precedence(capsys):
    np.save("x.npy", values())
    with open("run.toml", "w") as file:
        file.write('source = "x.npy"\nstore = "s"\nmax-rank = 3\nwindow = 4\nkeep = ["outliers", "std"]\nlimit = 6\n')
        file.write('json = true\n[set]\noutlier_rate = 0.01\n[select]\ntime = "2:20"\n')
    assert call("run", "--config", "run.toml", "--limit", "4") == 0
    assert json.loads(capsys.readouterr().out)["slices"] == 4
    found = xr.open_zarr("s")
    assert {"outliers", "std"} <= set(found.data_vars)
    assert "mean" not in found
    assert json.loads(found.attrs["settings"])["outlier_rate"] == 0.01
    with open("run.toml", "a") as file:
        file.write("[colours]\nred = 1\n")
    assert call("run", "--config", "run.toml") == 2
    assert capsys.readouterr().err == (
        "undertow: run.toml sets colours, which is no option of undertow run: see --help\n"
    )


def test_what_is_wrong_is_one_sentence_and_exit_code_2(capsys):
    np.save("x.npy", values())
    with open("bad.toml", "w") as file:
        file.write("window = [")
    for arguments, sentence in [
        (("run", "gone.npy"), "gone.npy does not exist: check the path"),
        (("run", "x.npy", "--keep", "lowrank"), "keep must be among mean, low_rank, std, outliers, "),
        (("run", "x.npy", "--window", "0"), "window must be at least 1"),
        (("run", "x.npy", "--set", "colour=3"), "'colour' is not a setting of the model"),
        (("run", "x.npy", "--set", "colour"), "--set takes a name and a value such as outlier_rate=0.01, got 'colour'"),
        (("run", "x.npy", "--model", "svd"), "--model must be tracker or cp, got 'svd'"),
        (
            ("run", "x.npy", "--model", "tracker", "--window", "4", "--set", "tau=slice"),
            "--model tracker has nothing to set, got --window, --set: leave them out, or use --model cp",
        ),
        (("run", "x.npy", "--alerts", "xml"), "--alerts must be one of csv, jsonl, parquet or none, got 'xml'"),
        (("run", "x.npy", "--config", "bad.toml"), "bad.toml is no TOML file"),
        (("run", "x.npy", "--config", "gone.toml"), "gone.toml cannot be read"),
        (("report", "x.npy"), "x.npy is not a folder: name a store that undertow run wrote"),
        (("export", ".", "x.csv"), ". is no store that undertow run wrote"),
        (("inspect", "gone"), "gone does not exist: check the path"),
    ]:
        assert call(*arguments) == 2, arguments
        message = capsys.readouterr().err
        assert message.startswith(f"undertow: {sentence}"), message
        assert message.count("\n") == 1
        assert not os.path.exists("x-undertow.zarr")


def test_a_setting_means_the_model_that_has_it():
    assert not ModelOptions().is_cp()
    assert ModelOptions().settings() == {}
    assert ModelOptions().notice() is None
    assert ModelOptions(window=4).is_cp()
    assert ModelOptions(window=4).settings()["window"] == 4
    assert ModelOptions(preset="fast", set_=["tau=slice"]).notice() == (
        "the model is RobustCP (--model cp), since its settings were given: --preset, --set"
    )
    assert ModelOptions(kind="cp", window=4).notice() is None
    assert ModelOptions(kind="cp").settings()["preset"] == "default"


@pytest.mark.slow
def test_the_tracker_is_the_default_and_cp_by_name(capsys):
    np.save("x.npy", values())
    assert call("run", "x.npy", "--limit", "3", "--json") == 0
    assert call("run", "x.npy", "--limit", "3", "--store", "s", "--model", "cp", *SMALL) == 0
    assert [xr.open_zarr(store).attrs["kind"] for store in ("x-undertow.zarr", "s")] == ["Tracker", "RobustCP"]
    capsys.readouterr()
    assert call("run", "x.npy", "--store", "s", "--resume") == 2
    assert capsys.readouterr().err == (
        "undertow: s was started with RobustCP, and this is Tracker: use the same model (--model cp), "
        "or name another store with --store\n"
    )


def test_a_store_of_a_tracker_tells_its_weights(capsys):
    run(StubStream(20), StubTracker(), store="s")
    assert call("inspect", "s", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["weights"] == {"level": 0.5, "covariance": 0.375, "cp": 0.125}
    assert facts["slices_with_events"] == 13


def test_debug_shows_everything_wherever_it_stands():
    with pytest.raises(ValueError, match="does not exist"):
        main(["run", "gone.npy", "--debug"])


def test_help_lists_every_choice(capsys):
    assert call("run", "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(preset in shown for preset in PRESETS)
    assert "csv, jsonl, parquet or none" in shown
    assert "mean, low_rank, std, outliers, outlier_probability, low_rank_std, data; or none" in shown


@pytest.mark.slow
def test_help_shows_examples_and_loads_nothing_heavy():
    code = (
        "import sys\nfrom undertow.cli import main\n"
        "for command in ('run', 'inspect', 'report', 'export'):\n"
        "    try:\n        main([command, '--help'])\n    except SystemExit as done:\n        assert done.code == 0\n"
        "assert not {'jax', 'matplotlib', 'zarr', 'xarray', 'pyarrow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("Examples:") == 4


@pytest.mark.slow
def test_ctrl_c_while_a_pipe_is_silent_ends_with_everything_in_the_store(tmp_path):
    command = [
        sys.executable,
        "-c",
        HEAR_SIGNALS + "from undertow.cli import main; main()",
        "run",
        "-",
        *SMALL,
        "--store",
        "s",
    ]
    process = subprocess.Popen(
        [*command, "--checkpoint-every", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for time_step, x in enumerate(np.nan_to_num(values(3), nan=1.0)):
        process.stdin.write((json.dumps({"time": time_step, "values": x.tolist()}) + "\n").encode())
    process.stdin.flush()
    deadline = time.monotonic() + 120
    while not (tmp_path / "s/.undertow/checkpoint-000000000003").exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    message = process.stderr.read().decode()
    assert process.wait() == 130, message
    assert message.endswith("undertow: stopped after 3 slices, all of them in s: continue with --resume\n")
    assert "Traceback" not in message
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 3
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()


def test_names_and_settings():
    assert str(default_store("data/lobby.tar.mp4")) == "lobby-undertow.zarr"
    assert str(default_store("-")) == "stdin-undertow.zarr"
    assert assignments(["a=1", "b=0.5", "c=word"]) == {"a": 1, "b": 0.5, "c": "word"}


def test_scripts_can_tell_whether_there_were_alerts(cheap_model, capsys):
    np.save("x.npy", values())
    assert call("run", "x.npy", "--json", "--threshold", "0.3") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["alerts"] > 0


def test_every_setting_and_preset_is_in_the_help(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.setenv("TERMINAL_WIDTH", "4000")
    assert call("run", "--help") == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("outlier_rate_strength", "precision_prior", "max_iterations", *PRESETS))


def test_a_table_without_columns_is_refused_in_words_of_the_command(capsys):
    Path("t.csv").write_text("t,a,v,w\n1,x,2,3\n2,x,2,3\n")
    assert call("run", "t.csv") == 2
    assert "name them with --time …, --modes … and --value …" in capsys.readouterr().err
