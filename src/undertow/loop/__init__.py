"""The loop: source → step → sinks, with checkpoints and resume."""

from undertow.loop.entry import run
from undertow.loop.errors import RunError, RunInterrupted
from undertow.loop.loop import Model
from undertow.loop.progress import Progress, RunSummary

__all__ = ["Model", "Progress", "RunError", "RunInterrupted", "RunSummary", "run"]
