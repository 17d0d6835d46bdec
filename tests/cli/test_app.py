"""What all commands have in common: help, version, errors in one sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

from undertow.cli import app, main


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


def call(*arguments):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    return done.value.code


def test_help_names_the_commands(capsys):
    assert call("--help") == 0
    assert "demo" in capsys.readouterr().out


def test_version(capsys):
    assert call("--version") == 0
    assert capsys.readouterr().out.startswith("undertow ")


def test_inspect_says_who_fell_silent_and_the_step_as_people_would(tmp_path, capsys):
    hours = np.datetime64("2026-03-01T00:00") + 10 * np.arange(60)
    rows = [f"{hour}+01:00,{number % 7},{number % 5 if number < 20 else ''}" for number, hour in enumerate(hours)]
    for rows_of, step in ((rows, "10 minutes"), (rows[::18], "3 hours")):
        (tmp_path / "x.csv").write_text("\n".join(["time,roof,hall", *rows_of]) + "\n")
        assert call("inspect", str(tmp_path / "x.csv")) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"step {step}" in shown
        assert ("silent hall" in shown) == (rows_of is rows)


def test_errors_are_json_too_where_that_is_asked_for(capsys):
    assert call("inspect", "no-such-file.csv", "--json") == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"] in shown.err
    assert call("inspect", "no-such-file.csv") == 2
    assert capsys.readouterr().out == ""


def test_unknown_command_and_bad_option(capsys):
    assert call("dmeo") == 2
    assert call("demo", "--slices", "many") == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_help_loads_neither_jax_nor_matplotlib():
    code = (
        "import sys\n"
        "from undertow.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as done:\n    assert done.code == 0\n"
        "assert not {'jax', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
def test_without_typer_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from undertow.cli import main; main(['demo'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "undertow: the command line needs typer: pip install 'undertow[cli]'\n"


def test_a_service_without_a_token_is_refused_in_a_sentence(monkeypatch, capsys):
    pytest.importorskip("fastapi")
    monkeypatch.delenv("UNDERTOW_TOKEN", raising=False)
    assert call("serve", "--host", "0.0.0.0") == 2
    told = capsys.readouterr().err
    assert "needs a token" in told
    assert "defect" not in told


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("x must be fine, got bad:\n  do this"), "x must be fine, got bad: do this"),
        (TypeError("x must be a number"), "x must be a number"),
        (FileNotFoundError(2, "No such file or directory", "there.npz"), "there.npz: no such file or directory"),
        (ModuleNotFoundError("no", name="matplotlib"), "this command needs matplotlib: pip install 'undertow[cli]'"),
        (ImportError("ssim needs scikit-image: pip install it"), "ssim needs scikit-image: pip install it"),
    ],
)
def test_refusals_of_the_library_become_one_sentence(monkeypatch, capsys, error, sentence):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(app, "app", refuse)
    assert app.run(["demo"]) == 2
    assert capsys.readouterr().err == f"undertow: {sentence}\n"
    with pytest.raises(type(error)):
        app.run(["--debug", "demo"])
