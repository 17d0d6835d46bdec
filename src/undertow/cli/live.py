"""``--live`` and ``undertow view``: the page of the service for work in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from undertow.cli.signals import SIGNALS
from undertow.incidents.rate import DEFAULT

if TYPE_CHECKING:
    from undertow.service.local import LocalPage


class LivePage:
    """A page, or none: then nothing is shown, and nothing is loaded for it."""

    def __init__(self, page: LocalPage | None = None) -> None:
        self._page = page

    def watched(
        self, name: str, source: Any, false_alarms: Any = DEFAULT, slice_seconds: float | None = None
    ) -> Callable[[Any, Any], None] | None:
        """What a run is to call for every slice that was learned; None where there is no page.

        Incidents are shown at the rate of false ones that the run accepts; none where that is None.
        """
        if self._page is None:
            return None
        from undertow.service.local import watched

        return watched(self._page, name, source, None if false_alarms is None else str(false_alarms), slice_seconds)


@contextmanager
def live_page(wanted: bool, port: int = 0) -> Iterator[LivePage]:
    """A page for the block, where it is wanted; it stays until Ctrl-C."""
    if not wanted:
        yield LivePage()
        return
    with _served(port) as page:
        yield LivePage(page)
        _stay(page)


def view(
    store: Annotated[Path, typer.Argument(help="What undertow run wrote.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for one that is free.")] = 0,
) -> None:
    """Show a finished run on a page: maps, curves and every cell, back through all its slices."""
    from undertow.runs.store.reader import open_store

    run = open_store(store, filled=True)
    with _served(port) as page:
        from undertow.service.local import show_store

        show_store(page, run)
        _stay(page)


@contextmanager
def _served(port: int) -> Iterator[LocalPage]:
    try:
        from undertow.service.local import local_page
    except ModuleNotFoundError as error:
        raise ImportError(f"the page needs {error.name}: pip install 'undertow[service]'") from None
    with local_page(port) as page:
        Console(stderr=True).print(f"Page: [bold]{page.address}[/]", soft_wrap=True, highlight=False)
        yield page


def _stay(page: LocalPage) -> None:
    console = Console(stderr=True)
    console.print(f"The page stays at [bold]{page.address}[/] until Ctrl-C.", soft_wrap=True, highlight=False)
    SIGNALS.sentence = lambda: "the page is closed"
    with SIGNALS.orderly():
        while True:
            time.sleep(3600)
