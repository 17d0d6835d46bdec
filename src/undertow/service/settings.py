"""What a service is started with: where it listens, what it accepts, what it keeps."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from undertow.service.errors import ServiceError


@dataclass(frozen=True)
class Limits:
    """Bounds on what clients may ask for, and on memory and disk.

    Attributes:
        body_bytes: Of one request.
        entries: Of one slice.
        slices: In one request.
        streams: In all.
        waiting: Slices that are logged or computed at the same time; beyond it clients are asked to come back.
        waiting_bytes: The same in bytes.
        resident_bytes: Of the models that are held in memory; others wait in the store.
        history: Slices of each stream whose results are kept.
        history_bytes: The same in bytes, for each stream.
        checkpoint_every: Slices after which a model is saved at the latest; as many are computed again after a crash.
            It is saved earlier where that would take ten times as long as saving.
        connections: Of pages that watch.
        together: Small streams that are stepped in one call. 1: each alone, which takes more processor time; what is
            learned again after a crash is the same to the bit then, and not to rounding.
    """

    body_bytes: int = 64 * 2**20
    entries: int = 1_000_000
    slices: int = 4096
    streams: int = 1000
    waiting: int = 1024
    waiting_bytes: int = 256 * 2**20
    resident_bytes: int = 2 * 2**30
    history: int = 2000
    history_bytes: int = 256 * 2**20
    checkpoint_every: int = 50
    connections: int = 64
    together: int = 64

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int) or value < 1:
                raise ServiceError(f"{name} must be an integer of at least 1, got {value!r}")


@dataclass(frozen=True)
class Settings:
    """Where the service listens and where it keeps its streams.

    Attributes:
        store: A file (SQLite), or ``postgresql://…``.
        host: Address to listen on; anything but loopback needs a token.
        port: 0 for one that is free.
        token: What clients must send as ``Authorization: Bearer TOKEN``; None on loopback only.
        names: Further host names under which the service may be asked, such as that of a proxy.
        limits: Bounds.
        deliver: Where each incident is sent when it opens and when it closes: a file of JSON lines, https://…, smtp://…,
            nats://….
        subscribe: Streams that are fed by a broker, ``name=nats://host/subject``.
        publish: Streams whose results are published, in the same form.
    """

    store: str = "undertow-service.db"
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    names: tuple[str, ...] = ()
    limits: Limits = Limits()
    deliver: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 16:
            raise ServiceError(f"the token must have at least 16 characters, got {len(self.token)}: use a longer one")
        if self.token is None and not is_loopback(self.host):
            raise ServiceError(
                f"listening on {self.host} lets others in and needs a token: set UNDERTOW_TOKEN to at least 16 "
                "characters (python -c 'import secrets; print(secrets.token_urlsafe())'), or listen on 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
