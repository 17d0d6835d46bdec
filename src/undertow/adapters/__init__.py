"""Undertow as a part of other libraries: `adapters.sklearn`, `adapters.river`, `adapters.pandas`."""
