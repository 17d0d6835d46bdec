"""Versions of what the state of a shard consists of: which can be read, and how an older one becomes the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from undertow.serialization.container import CheckpointError

STATE_VERSION = 2
"""Raise it whenever the meaning or the names of what `Shard.to_bytes` writes change, and add a line to `CONVERTERS`."""
Content = tuple[dict[str, Any], dict[str, NDArray[Any]]]
CONVERTERS: dict[int, Callable[[Content], Content]] = {}
"""From a state version: what makes the next one of it."""


def converted(content: Content, name: str) -> Content:
    """As this version has it."""
    header = content[0]
    if header.get("kind") != "Shard":
        raise CheckpointError(f"checkpoint {name} holds {header.get('kind')!r}, not a shard: name another one.")
    check_version(header.get("state_version"))
    for version in range(int(header["state_version"]), STATE_VERSION):
        content = CONVERTERS[version](content)
    return content


def check_version(version: Any) -> None:
    """Refuse a state that cannot be read.

    Raises:
        CheckpointError: It is newer, or older and without a converter.
    """
    if isinstance(version, int) and version > STATE_VERSION:
        raise CheckpointError(
            f"the state has version {version}, this Undertow reads up to {STATE_VERSION}: upgrade undertow everywhere."
        )
    if not isinstance(version, int) or any(step not in CONVERTERS for step in range(version, STATE_VERSION)):
        raise CheckpointError(
            f"the state has version {version!r}, this Undertow reads {STATE_VERSION}: "
            "use the version of undertow that wrote it, or begin with an empty checkpoint folder."
        )
