"""Which shard a stream belongs to: the same in Python and on the engine's side, in every process, for ever."""

from __future__ import annotations

import zlib


def shard_of(stream: str, shards: int) -> int:
    """crc32(name in UTF-8) mod n, as `pyspark.sql.functions.crc32` has it too.

    Args:
        stream: Its name.
        shards: n, how many there are.

    Returns:
        0, …, n − 1.

    Examples:
        >>> shard_of("router-17", 8)
        5
    """
    return zlib.crc32(stream.encode()) % shards
