"""Sources of slices, one file a format: opened by name, read lazily, resumed from any slice."""

from undertow.streams.opening import open_stream
from undertow.streams.stream import JSON, Item, Label, Stream, StreamError

__all__ = ["JSON", "Item", "Label", "Stream", "StreamError", "open_stream"]
