"""Streams to try things on: generated ones with known truth, and loaders of public data sets.

Every module is imported by its own name (``from undertow.datasets import synthetic``).
"""
