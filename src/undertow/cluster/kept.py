"""A shard in the state store of an engine, and in the memory of the worker that stepped it last. Knows no engine.

In the store are its bytes, and a head: the version of the state, and a token that is new with every change. A worker
keeps the shards that it has stepped by their tokens, and reads the bytes only where the head has another one: after a
failure, or when another worker has stepped the shard meanwhile.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import Any, Protocol

from undertow.cluster import versions
from undertow.cluster.plan import Plan
from undertow.cluster.shard import Shard

HEAD, BODY = "version int, token string", "content binary"
"""What is in the store, as Spark writes schemas."""
MOST_LIVE = 32
"""Shards that a worker keeps in memory."""

_live: OrderedDict[str, Shard] = OrderedDict()


class Value(Protocol):
    """One value of a key in the state store, as pyspark has it."""

    def exists(self) -> bool:
        """Whether there is one."""

    def get(self) -> Any:
        """Its columns."""

    def update(self, newValue: Any) -> None:
        """Replace it."""

    def clear(self) -> None:
        """Remove it."""


def taken(plan: Plan, head: Value, body: Value) -> Shard:
    """The shard as it is in the state store; a new one where there is none.

    Raises:
        CheckpointError: The state cannot be read, or is that of another plan; it stays as it is.
    """
    if not head.exists():
        return Shard(plan)
    version, token = head.get()
    versions.check_version(version)
    live = _live.pop(token, None)  # what follows changes it: should the task fail, nobody must find it
    if live is not None and live.plan == plan:
        return live
    return Shard.from_bytes(bytes(body.get()[0]), plan)


def keep(shard: Shard, head: Value, body: Value) -> None:
    """Put it there; nothing of a shard without streams."""
    if not len(shard):
        head.clear()
        body.clear()
        return
    token = uuid.uuid4().hex
    body.update((shard.to_bytes(),))
    head.update((versions.STATE_VERSION, token))
    _live[token] = shard
    while len(_live) > MOST_LIVE:
        _live.popitem(last=False)
