"""Generated streams, from a seed."""

from undertow.lab.synthetic.ingredients import SyntheticStream
from undertow.lab.synthetic.streams import authors, drifting

__all__ = ["SyntheticStream", "authors", "drifting"]
