"""The door: what a run may be asked to do, checked before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from undertow.runs.errors import RunError, room_is_gone
from undertow.runs.identity import Output
from undertow.runs.interrupt import Interrupt
from undertow.runs.progress import Progress, RunSummary
from undertow.runs.runner import Loop, Model
from undertow.runs.store.alerts import FORMATS, Format
from undertow.runs.store.files import StoreError, only_writer
from undertow.runs.store.folder import claim
from undertow.runs.store.layout import DEFAULT_KEEP, Precision, chosen
from undertow.serialization.container import CheckpointError
from undertow.sources.base import Stream


def run(
    stream: Stream | str | os.PathLike[str],
    model: Model | None = None,
    *,
    store: str | os.PathLike[str],
    resume: bool = False,
    overwrite: bool = False,
    keep: str | Sequence[str] = DEFAULT_KEEP,
    precision: Precision = "single",
    alerts: Format | None = "csv",
    threshold: float = 0.5,
    checkpoint_every: int | None = None,
    checkpoint_seconds: float = 30.0,
    limit: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
    load: Callable[[Path], Model] | None = None,
) -> RunSummary:
    """Give a stream to a model slice by slice and put what it says into a store.

    Args:
        stream: what `undertow.open_stream` gives, or a path to open with its defaults.
        model: `undertow.RobustCP` with its defaults if left out; with ``resume`` it tells the settings only.
        store: folder of the results: a Zarr group (`xarray.open_zarr`), alerts beside it, checkpoints inside.
        resume: go on where an earlier run of the same source and settings stopped; begin if there was none.
        overwrite: remove the results of an earlier run first.
        keep: which arrays to keep of every slice: low_rank, std, outliers, outlier_probability, low_rank_std, data.
        precision: of the arrays kept; "single" holds seven digits.
        alerts: format of the table of outliers, "csv", "jsonl" or "parquet"; None for no table.
        threshold: an entry is an alert if its outlier probability is at least this.
        checkpoint_every: write a checkpoint every so many slices, and chunks of so many (if they are not too large).
        checkpoint_seconds: write a checkpoint whenever so much time has passed since the last.
        limit: stop when the store holds so many slices.
        progress: called after every slice.
        say: called with sentences that a user should see.
        load: reads what ``model.save`` wrote; `undertow.load` by default.

    Raises:
        RunError: it cannot begin or go on; what was done before is safe.
        RunInterrupted: Ctrl-C or SIGTERM, after the slice under way and with everything safe.
    """
    folder = Path(store)
    _check_packages(alerts)
    _check(alerts, threshold, checkpoint_every, checkpoint_seconds, limit, precision)
    opened = _open(stream)
    try:
        output = Output(chosen(keep), precision, alerts, threshold, checkpoint_every)
        private = claim(folder, resume=resume, overwrite=overwrite)
        with only_writer(private / "lock"), Interrupt() as interrupt:
            loop = Loop(opened, model or _default_model(), folder, output, interrupt)
            loop.checkpoint_seconds, loop.limit, loop.progress, loop.tell = checkpoint_seconds, limit, progress, say
            loop.begin(resume, load)
            return loop.go()
    except (StoreError, CheckpointError) as error:
        raise RunError(str(error)) from error
    except OSError as error:
        if room_is_gone(error):
            raise RunError(f"there is no room for {folder}: make some, or name another place with --store") from error
        raise
    finally:
        if opened is not stream:
            opened.close()


def _check_packages(alerts: Format | None) -> None:
    for name in ("numcodecs", "zarr"):
        if find_spec(name) is None:
            raise RunError(f"a store needs {name}: pip install 'undertow[store]'")
    if alerts == "parquet" and find_spec("pyarrow") is None:
        raise RunError("alerts in Parquet need pyarrow: pip install 'undertow[table]', or use csv")


def _open(stream: Stream | str | os.PathLike[str]) -> Stream:
    if not isinstance(stream, (str, os.PathLike)):
        return stream
    from undertow.sources import open_stream

    return open_stream(stream)


def _default_model() -> Model:
    from undertow.estimator import RobustCP  # not before it is needed: it brings jax

    return RobustCP()


def _check(
    alerts: Any, threshold: float, checkpoint_every: int | None, seconds: float, limit: int | None, precision: str
) -> None:
    if alerts is not None and alerts not in FORMATS:
        raise RunError(f"alerts must be one of {', '.join(FORMATS)} or none, got {alerts!r}")
    if precision not in ("single", "double"):
        raise RunError(f"precision must be single or double, got {precision!r}")
    if not 0 < threshold <= 1:
        raise RunError(f"threshold must be a probability above 0 and at most 1, got {threshold}")
    if checkpoint_every is not None and checkpoint_every < 1:
        raise RunError(f"checkpoint_every must be at least 1 slice, got {checkpoint_every}")
    if not seconds > 0:
        raise RunError(f"checkpoint_seconds must be more than 0, got {seconds}")
    if limit is not None and limit < 1:
        raise RunError(f"limit must be at least 1 slice, got {limit}")
