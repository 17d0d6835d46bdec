"""The page for users: its options exist, its configuration file is understood."""

import re
import tomllib
from pathlib import Path

from typer.main import get_command

from undertow.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "runs-and-resume.md").read_text()


def test_every_option_named_is_one():
    commands = get_command(app).commands
    known = {spelling for command in commands.values() for parameter in command.params for spelling in parameter.opts}
    named = set(re.findall(r"--[a-z][a-z-]*", PAGE))
    assert len(named) > 10
    assert named - known - {"--help", "--debug"} == set()


def test_the_configuration_file_names_options_of_run():
    content = tomllib.loads(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    known = {
        spelling.lstrip("-") for parameter in get_command(app).commands["run"].params for spelling in parameter.opts
    }
    assert set(content) <= known
