"""Jobs of a study, one after the other or in worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from undertow.lab.reporter import Reporter

Job = TypeVar("Job")
Record = TypeVar("Record")


def performed(
    perform: Callable[[Job, Reporter], Record], work: Sequence[Job], jobs: int, reporter: Reporter
) -> Iterator[Record]:
    """What comes of every job, in the order in which they end.

    Args:
        perform: A function of a module; what it gets and gives can be pickled.
        work: The jobs.
        jobs: Worker processes; 1 for none.
        reporter: Shows progress, where there are no worker processes.
    """
    if jobs == 1:
        yield from (perform(job, reporter) for job in work)
        return
    # A forked child would inherit threads of JAX that do not run in it.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_leave_with_parent) as pool:
        for done in as_completed([pool.submit(perform, job, Reporter()) for job in work]):
            yield done.result()


def _leave_with_parent() -> None:
    """A worker process leaves Ctrl-C to its parent, and does not outlive it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker

    def leave() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=leave, name="undertow worker", daemon=True).start()
