"""Criteria: what a model is asked on a stream, how that is measured, and the figure asked."""
