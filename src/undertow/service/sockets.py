"""The WebSocket that pages listen to: an overview of all streams, and frames of the one that is shown."""

from __future__ import annotations

import asyncio
import contextlib

import orjson
from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from undertow.service.live import OVERVIEW_SECONDS, Hub, Watcher
from undertow.service.security import PROTOCOL

router = APIRouter()


@router.websocket("/api/live")
async def live(socket: WebSocket) -> None:
    """A page: it says ``{"watch": NAME}``; it gets overviews as text and frames as bytes, only the newest of each."""
    hub: Hub = socket.app.state.hub
    if hub.closing or hub.pages >= socket.app.state.settings.limits.connections:
        await socket.close(1013, "too many pages are open")
        return
    await socket.accept(PROTOCOL if PROTOCOL in socket.scope.get("subprotocols", []) else None)
    watcher = hub.join()
    tasks = [asyncio.create_task(job(socket, hub, watcher)) for job in (_listen, _send)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError, ValueError, TypeError, AttributeError):
                task.result()
    finally:
        hub.leave(watcher)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it may have gone
        await socket.close(1001 if hub.closing else 1000)


async def _listen(socket: WebSocket, hub: Hub, watcher: Watcher) -> None:
    while True:
        text = await socket.receive_text()
        if len(text) > 1000:
            return
        wanted = orjson.loads(text).get("watch")
        watcher.watched = wanted if isinstance(wanted, str) else None


async def _send(socket: WebSocket, hub: Hub, watcher: Watcher) -> None:
    seen, due = -1, 0.0
    clock = asyncio.get_running_loop()
    while not hub.closing:
        if (frame := hub.taken(watcher)) is not None:
            await socket.send_bytes(frame)
        if hub.changes != seen and clock.time() >= due:
            seen, due = hub.changes, clock.time() + OVERVIEW_SECONDS
            await socket.send_text(hub.overview().decode())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watcher.event.wait(), OVERVIEW_SECONDS)
        watcher.event.clear()
