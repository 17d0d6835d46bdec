"""The application: API, page and health behind one guard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from undertow import __version__
from undertow.incidents.delivery import Courier, channel
from undertow.service import broker, pages, routes, schemas, sockets
from undertow.service.answers import as_json
from undertow.service.errors import Busy, ServiceError
from undertow.service.hosted import Models, trackers
from undertow.service.live import Hub
from undertow.service.metrics import Metrics
from undertow.service.security import Guard
from undertow.service.settings import Settings
from undertow.service.store.base import Store
from undertow.service.store.opening import open_store
from undertow.service.store.outbox import StoreOutbox
from undertow.service.streams import Streams

_LOG = logging.getLogger("undertow.service")


def make_app(
    settings: Settings,
    models: Models | None = None,
    failed: Callable[[], None] = lambda: None,
    *,
    read_only: bool = False,
) -> Guard:
    """The service as an ASGI application.

    Args:
        settings: Store, token and limits.
        models: `undertow.Tracker` for every stream if left out.
        failed: Called when the store cannot be written any more.
        read_only: Whether it only shows: no streams are made, fed or deleted by clients.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_store(settings.store) as store:
            hub, metrics = Hub(asyncio.get_running_loop()), Metrics()
            made = models or trackers()
            courier = _courier(settings, store)
            streams = Streams(store, made, settings.limits, hub, metrics, failed, courier)
            workers = _workers(settings, streams)
            app.state.loop, app.state.read_only = asyncio.get_running_loop(), read_only
            app.state.settings, app.state.hub, app.state.metrics, app.state.streams = settings, hub, metrics, streams
            _LOG.info("started", extra={"fields": {"streams": len(streams.all()), "version": __version__}})
            try:
                yield
            finally:
                hub.close()
                for worker in workers:
                    await asyncio.to_thread(worker.stop)
                await asyncio.to_thread(streams.stop)
                for sentence in [] if courier is None else await asyncio.to_thread(courier.close):
                    _LOG.warning("not delivered", extra={"fields": {"reason": sentence}})
                _LOG.info("stopped")

    app = FastAPI(
        title="Undertow",
        version=__version__,
        summary="Streams of tensors: completion, outliers, incidents.",
        lifespan=lifespan,
        docs_url=None,  # its page takes scripts from elsewhere; /openapi.json is there
        redoc_url=None,
    )
    app.include_router(routes.router)
    app.include_router(sockets.router)
    app.include_router(pages.router)
    _add_health(app)
    _add_errors(app)
    _document_errors(app)

    def refused(status: int) -> None:
        app.state.metrics.refused.labels(str(status)).inc()

    return Guard(app, settings, read_only=read_only, refused=refused)


def _courier(settings: Settings, store: Store) -> Courier | None:
    """Who delivers incidents, where that was asked for."""
    if not settings.deliver:
        return None
    channels = [channel(address) for address in settings.deliver]
    return Courier(StoreOutbox(store, [one.name for one in channels]), channels, "")


def _workers(settings: Settings, streams: Streams) -> list[broker.Worker]:
    """Who feeds streams from a broker, and who publishes what was found."""
    fed, told = broker.named(settings.subscribe), broker.named(settings.publish)
    both: list[tuple[type[broker.Worker], tuple[str, str]]] = [(broker.Subscription, one) for one in fed]
    both += [(broker.Publication, one) for one in told]
    streams.fed = frozenset(name for name, _ in fed)
    return [kind(streams, name, address) for kind, (name, address) in both]


def _add_health(app: FastAPI) -> None:
    @app.get("/healthz", response_model=schemas.Health, tags=["health"])
    def healthz() -> Response:
        """Whether the process answers."""
        return as_json({"status": "ok"})

    @app.get("/readyz", response_model=schemas.Health, responses={503: {"model": schemas.Health}}, tags=["health"])
    def readyz(request: Request) -> Response:
        """Whether slices are accepted."""
        streams: Streams = request.app.state.streams
        behind = streams.inference.catching_up
        if streams.writer.broken:
            return as_json({"status": "failed", "reason": streams.writer.broken, "catching_up": behind}, 503)
        return as_json({"status": "ok", "catching_up": behind})

    @app.get("/metrics", response_class=Response, tags=["health"])
    def metrics(request: Request) -> Response:
        """Numbers for Prometheus."""
        return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_errors(app: FastAPI) -> None:
    def refused(request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
        request.app.state.metrics.refused.labels(str(status)).inc()
        answer = as_json({"error": message}, status)
        answer.headers.update(headers or {})
        return answer

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> Response:
        headers = {"retry-after": str(error.retry_after)} if isinstance(error, Busy) else None
        return refused(request, error.status, str(error), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = " ".join(str(part) for part in first["loc"] if part not in ("query", "path", "body"))
        return refused(request, 422, f"{where or 'the request'}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        nowhere = "there is nothing at this address: /openapi.json lists what there is"
        message = {404: nowhere, 405: f"{request.method} is not for this address: see /openapi.json"}
        detail = message.get(error.status_code, str(error.detail))
        return refused(request, error.status_code, detail, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        _LOG.error("request failed", exc_info=error, extra={"fields": {"path": request.url.path}})
        return refused(request, 500, "a defect of the service: its log says more")


def _document_errors(app: FastAPI) -> None:
    """FastAPI documents validation errors in a form of its own; here all errors have one form."""
    make = app.openapi

    def documented() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = make()
            for name in ("HTTPValidationError", "ValidationError"):
                schema.get("components", {}).get("schemas", {}).pop(name, None)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = documented  # type: ignore[method-assign]
