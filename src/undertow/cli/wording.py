"""Sentences of the library as a user of the command reads them: options are named as they are typed."""

from __future__ import annotations

import re
from dataclasses import fields

_VALUE = r"(?:'[^']*'|\"[^\"]*\"|…|[\w.+-]+)"


def as_typed(sentence: str) -> str:
    """``time='t'`` becomes ``--time t``; what is said both ways is said once.

    Examples:
        >>> as_typed("name its columns, for example time='t', modes='src,dst'")
        'name its columns, for example --time t, --modes src,dst'
        >>> as_typed("leave such rows out with --on-bad skip (on_bad='skip')")
        'leave such rows out with --on-bad skip'
        >>> as_typed("continue with --resume (resume=True), or name another with --store (store=…)")
        'continue with --resume, or name another with --store'
        >>> as_typed("on_bad must be one of stop, skip, got 'go'")
        "--on-bad must be one of stop, skip, got 'go'"
    """
    names = "|".join(sorted(_names(), key=len, reverse=True))
    sentence = re.sub(rf"^(?!time |mask )({names})(?= (?:must be one of|must be a|is for|needs) )", _name, sentence)
    sentence = re.sub(rf"(--[\w-]+(?: [^\s(]\S*)?) \((?:{names})={_VALUE}\)", r"\1", sentence)
    return re.sub(rf"(?<![^\s(,])({names})=({_VALUE})", _option, sentence)


def _name(match: re.Match[str]) -> str:
    return "--" + match[1].replace("_", "-")


def _option(match: re.Match[str]) -> str:
    name, value = _name(match), match[2]
    plain = value[1:-1] if value[0] in "'\"" else value
    if value == "True":
        return name
    return f'{name} "{plain}"' if " " in plain or not plain else f"{name} {plain}"


def _names() -> set[str]:
    """Of the options that are arguments of the library under the same name."""
    from undertow.cli.source_options import FollowingOptions
    from undertow.runs.options import RunOptions

    return {"store", *(field.name for group in (FollowingOptions, RunOptions) for field in fields(group))}
