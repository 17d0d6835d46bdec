"""``undertow serve``: the service and its page."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Annotated

import typer
from rich.console import Console

from undertow.cli.signals import SIGNALS


def serve(
    store: Annotated[
        str, typer.Option(help="Where streams are kept: a file, or postgresql://user@host/database.")
    ] = "undertow-service.db",
    host: Annotated[str, typer.Option(help="Address; all but loopback need UNDERTOW_TOKEN.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for one that is free.")] = 8765,
    name: Annotated[list[str] | None, typer.Option(help="Further host name to answer to, such as a proxy's.")] = None,
    deliver: Annotated[
        list[str] | None, typer.Option(help="Send incidents to a .jsonl file, https://…, smtp://…, nats://…")
    ] = None,
    subscribe: Annotated[
        list[str] | None, typer.Option(help="Feed a stream: NAME=nats://host/subject or NAME=kafka://host/topic.")
    ] = None,
    publish: Annotated[
        list[str] | None, typer.Option(help="Publish what was found in a stream, in the same form.")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help="A limit, such as streams=2000; --limits lists them.")] = None,
    limits: Annotated[bool, typer.Option("--limits", help="Show all limits and exit.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Fill the page with a moving example.")] = False,
) -> None:
    """Take slices over HTTP for many streams, keep them safe, and show a live page.

    A token that clients must send is read from the environment variable UNDERTOW_TOKEN.
    """
    try:
        from undertow.service.server import Server
    except ModuleNotFoundError as error:
        raise ImportError(f"the service needs {error.name}: pip install 'undertow[service]'") from None
    from undertow.service.settings import Limits, Settings

    if limits:
        Console().print("\n".join(f"{one.name}={one.default}" for one in fields(Limits)), highlight=False)
        return
    given = Limits(**_limits(limit or [], {one.name for one in fields(Limits)}))
    settings = Settings(
        store,
        host,
        port,
        os.environ.get("UNDERTOW_TOKEN"),
        tuple(name or ()),
        given,
        tuple(deliver or ()),
        tuple(subscribe or ()),
        tuple(publish or ()),
    )
    server = Server(settings)
    console = Console(stderr=True)

    def ready(address: str) -> None:
        protected = "a token is needed" if settings.token else "no token is needed, only this machine can reach it"
        console.print(f"Page: [bold]{address}[/]  ({protected})", soft_wrap=True, highlight=False)
        if demo:
            from undertow.service.demo import start

            start(address, settings.token)

    SIGNALS.hand_over()
    server.run(ready)


def _limits(texts: list[str], known: set[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or name not in known or not value.isdigit():
            raise ValueError(f"--limit takes a name and a number such as streams=2000 (see --limits), got {text!r}")
        found[name] = int(value)
    return found
