"""The process: uvicorn around the application, until a signal ends it in an orderly way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from undertow.service import logs
from undertow.service.errors import ServiceError
from undertow.service.hosted import Models
from undertow.service.settings import Settings

_GRACE = 20  # seconds for requests that are under way when the service is stopped


class Server:
    """A service that can be run in this thread, or beside other work.

    Args:
        settings: Where it listens and what it keeps.
        models: `undertow.Tracker` if left out.
        app: Another application, such as that of a finished run.
    """

    def __init__(self, settings: Settings, models: Models | None = None, app: Any = None) -> None:
        try:
            import uvicorn

            from undertow.service.app import make_app
        except ModuleNotFoundError as error:
            raise ServiceError(f"the service needs {error.name}: pip install 'undertow[service]'") from None
        made = app if app is not None else make_app(settings, models, failed=self._fail)
        self._failed = False
        self._started = threading.Event()
        self._server = uvicorn.Server(
            uvicorn.Config(
                made,
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                ws_max_size=4096,
                ws_per_message_deflate=False,  # frames are noise: it takes longer than to send them
                h11_max_incomplete_event_size=16384,
            )
        )

    def run(self, ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve until SIGINT or SIGTERM; ``ready`` gets the address once it listens.

        Raises:
            ServiceError: The store cannot be written any more, or the port is taken.
        """
        if threading.current_thread() is threading.main_thread():
            logs.configure()
        watch = threading.Thread(target=self._announce, args=(ready,), daemon=True)
        watch.start()
        try:
            self._server.run()
        except SystemExit:
            raise ServiceError("the service could not start: is the port taken, or the store in use?") from None
        finally:
            self._started.set()
        if self._failed:
            raise ServiceError("the store could not be written: free space, or repair it, and start again")

    def stop(self) -> None:
        """End as a signal would."""
        self._server.should_exit = True

    @property
    def address(self) -> str:
        """``http://127.0.0.1:8765``; once it listens."""
        host, port = self._server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def _announce(self, ready: Callable[[str], None]) -> None:
        while not self._server.started and not self._started.wait(0.02):
            pass
        if self._server.started:
            ready(self.address)

    def _fail(self) -> None:
        self._failed = True
        self._server.should_exit = True
