"""Options of a command in groups: frozen dataclasses whose fields typer sees as single options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: typer gets their fields as options, the command gets them put together.

    Args:
        command: a function with typer's annotations; a parameter that is a dataclass stands for all of its fields,
            each of them ``Annotated[type, typer.Option(...)]`` with a default.

    Returns:
        A function with the flat signature that typer needs.

    Example:
        >>> @dataclass(frozen=True)  # doctest: +SKIP
        ... class Output:
        ...     precision: Annotated[str, typer.Option(help="single or double.")] = "single"
        >>> @app.command()  # doctest: +SKIP
        ... @grouped
        ... def convert(source: str, output: Output) -> None: ...
    """
    declared = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        one.name: one.annotation for one in declared.parameters.values() if is_dataclass(one.annotation)
    }
    flat: list[Parameter] = []
    for parameter in declared.parameters.values():
        if parameter.name in groups:
            hints = get_type_hints(group := groups[parameter.name], include_extras=True)
            flat += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
                for field in fields(group)
            ]
        else:
            flat.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def flattened(**given: Any) -> None:
        built = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **built)

    flattened.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    flattened.__signature__ = declared.replace(parameters=flat)  # type: ignore[attr-defined]
    return flattened
