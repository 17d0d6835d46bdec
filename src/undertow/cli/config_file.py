"""``--config run.toml``: options from a file; the command line takes precedence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer


def _read(context: typer.Context, path: Path | None) -> Path | None:
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): check the name after --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file ({error}): write lines such as window = 20") from None
    known = {
        spelling.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for spelling in parameter.opts
        if parameter.name != "config"
    }
    defaults: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in known:
            raise ValueError(f"{path} sets {key}, which is no option of undertow {context.command.name}: see --help")
        repeated = getattr(known[name], "multiple", False)
        if isinstance(value, dict):  # a table, such as [set] or [select]
            value = [f"{inner}={_text(part)}" for inner, part in value.items()]
        elif isinstance(value, list) and not repeated:
            value = ",".join(map(str, value))
        elif repeated and not isinstance(value, list):
            value = [value]
        if isinstance(value, list) and not repeated:
            raise ValueError(f"{path} gives {key} as a table, and it takes one value: write {key} = …")
        defaults[str(known[name].name)] = value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _text(part: Any) -> str:
    return ",".join(map(str, part)) if isinstance(part, list) else str(part)


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", callback=_read, is_eager=True, help='TOML file with options: window = 20, keep = ["data"].'
    ),
]
