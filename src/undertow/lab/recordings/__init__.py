"""Loaders of public recordings; each module is imported by its own name."""
