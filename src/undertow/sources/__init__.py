"""Sources of slices, one file a format: opened by name, read lazily, resumed from any slice."""

from undertow.sources.base import JSON, Item, Label, Stream, StreamError
from undertow.sources.opening import open_stream

__all__ = ["JSON", "Item", "Label", "Stream", "StreamError", "open_stream"]
