"""Runs: a stream through a model into a store, with checkpoints and resume."""

from undertow.runs.entry import run
from undertow.runs.errors import RunError, RunInterrupted, StoreError
from undertow.runs.progress import Progress, RunSummary
from undertow.runs.runner import Model

__all__ = ["Model", "Progress", "RunError", "RunInterrupted", "RunSummary", "StoreError", "run"]
