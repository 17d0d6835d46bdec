"""Who may ask: tokens, hosts, origins; and what every answer says to browsers."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from undertow.service.settings import Settings, is_loopback

OPEN = ("/healthz", "/readyz", "/", "/page/")
"""What needs no token: it holds no data."""
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
]
PATIENCE = 60.0
"""Seconds that a body may take to come."""
PROTOCOL = "undertow"
"""Of WebSockets; a token comes as a second one, since browsers send no header with them."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Guard:
    """An ASGI layer around everything else.

    A page of another site can make a browser send requests here. What it cannot do is name this service as host
    (which keeps out names that are made to point to loopback), or hide its origin.
    """

    def __init__(
        self,
        app: Any,
        settings: Settings,
        *,
        read_only: bool = False,
        refused: Callable[[int], None] = lambda status: None,
    ) -> None:
        self.app, self._token, self._read_only, self._told = app, settings.token, read_only, refused
        self._most = settings.limits.body_bytes
        self._any_host = not is_loopback(settings.host)
        self._hosts = {"localhost", "127.0.0.1", "[::1]", settings.host.lower(), *map(str.lower, settings.names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refused(scope)
        if refusal is None and scope["type"] == "http" and not _is_open(scope["path"]):  # there nobody reads bodies
            refusal, receive = await self._read(scope, receive)
        if refusal is None:
            await self.app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)
            return
        self._told(refusal[0])
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1][:100]})
        else:
            await _refuse(_with_headers(send), *refusal)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._any_host and _name(host) not in self._hosts:
            return 421, "this service does not answer to that host name: use 127.0.0.1, or allow the name with --name"
        unsafe = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if unsafe and origin is not None and origin.partition("://")[2].lower() != host.lower():
            return 403, "requests of other sites are refused"
        if self._read_only and scope["type"] == "http" and unsafe:
            return 403, "this page only shows what a run does"
        if self._token is not None and not _is_open(scope["path"]) and not self._is_valid(headers):
            return 401, "this service needs a token: send Authorization: Bearer TOKEN"
        return None

    async def _read(self, scope: Scope, receive: Receive) -> tuple[tuple[int, str] | None, Receive]:
        """The body, refused as soon as it is too large, and what gives it once more."""
        claimed = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if claimed.isdigit() and int(claimed) > self._most:
            return (413, f"a request may have {self._most} bytes, got {int(claimed)}: send less per request"), receive
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(PATIENCE):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":  # the client has gone
                        return None, _given([message], receive)
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > self._most:
                        return (413, f"a request may have {self._most} bytes: send less per request"), receive
        except TimeoutError:
            return (408, "the body did not come within a minute: send less per request"), receive
        return None, _given([{"type": "http.request", "body": b"".join(parts), "more_body": False}], receive)

    def _is_valid(self, headers: dict[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            given = _from_protocols(headers.get("sec-websocket-protocol", ""))
        return hmac.compare_digest(given.strip().encode(), (self._token or "").encode())


def _given(messages: list[Any], receive: Receive) -> Receive:
    """These first."""

    async def received() -> Any:
        return messages.pop(0) if messages else await receive()

    return received


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")


def _name(host: str) -> str:
    """Without the port."""
    return (host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]).lower()


def _from_protocols(text: str) -> str:
    for one in text.split(","):
        if one.strip().startswith("token."):
            content = one.strip().removeprefix("token.")
            try:
                return base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)).decode()
            except ValueError:
                return ""
    return ""


def _with_headers(send: Send) -> Send:
    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in own)]
        await send(message)

    return sent


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(b"content-type", b"application/json")]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="undertow"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps({"error": reason})})
