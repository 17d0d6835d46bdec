"""`undertow.run`: validated options, a store that belongs to this run alone, errors in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from undertow.incidents.rate import DEFAULT
from undertow.runs.default_model import default_model
from undertow.runs.errors import RunError, StoreError, disk_is_full
from undertow.runs.interrupt import Interrupt
from undertow.runs.options import AlertsPer, OnBad, RunOptions, pictures
from undertow.runs.progress import Progress, RunSummary
from undertow.runs.runner import Model, Runner
from undertow.runs.store.alerts import Format
from undertow.runs.store.folder import only_writer
from undertow.runs.store.layout import DEFAULT_KEEP, Precision
from undertow.runs.store.manifest import claim
from undertow.serialization.container import CheckpointError
from undertow.sources.base import Item, Stream
from undertow.sources.brokers.base import shown


def run(
    stream: Stream | str | os.PathLike[str],
    model: Model | None = None,
    *,
    store: str | os.PathLike[str],
    keep: str | Sequence[str] = DEFAULT_KEEP,
    precision: Precision = "single",
    alerts: Format | None = "csv",
    threshold: float = 0.5,
    checkpoint_every: int | None = None,
    checkpoint_seconds: float = 30.0,
    limit: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    new_data: bool = False,
    on_bad: OnBad = "stop",
    spreadsheet_safe: bool = False,
    false_alarms: str | float | None = DEFAULT,
    slice_seconds: float | None = None,
    deliver: Sequence[str] = (),
    publish: str | None = None,
    alerts_per: AlertsPer | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] | None = None,
    learned: Callable[[Item, Any], None] | None = None,
    load: Callable[[bytes], Model] | None = None,
) -> RunSummary:
    """Update a model with a stream slice by slice and write the results into a store.

    Args:
        stream: what `undertow.open_stream` gives, or a path to open with its defaults.
        model: `undertow.Tracker` if left out; with ``resume`` only its settings count.
        store: folder of the results: a Zarr group (`xarray.open_zarr`), alerts beside it, checkpoints inside.
        keep: arrays to keep of every slice: mean, std, outliers, outlier_probability, low_rank, low_rank_std, data.
        precision: of the arrays kept; "single" holds seven digits.
        alerts: format of the table of outliers, "csv", "jsonl" or "parquet"; None for no table.
        threshold: an entry is an alert if its outlier probability is at least this.
        checkpoint_every: write a checkpoint every n slices, and chunks of n slices (if they are not too large).
        checkpoint_seconds: write a checkpoint whenever this much time has passed since the last.
        limit: stop when the store holds n slices.
        resume: continue where an earlier run of the same source and settings stopped; start if there was none.
        overwrite: remove the results of an earlier run first.
        new_data: with ``resume``, everything in the pipe is new; otherwise what was done is expected again and skipped.
        on_bad: "stop" at a slice that cannot be used (its time is of another kind, the model refuses it), or "skip" it
            with a notice.
        spreadsheet_safe: in alerts as CSV, put an apostrophe before text that a spreadsheet would run as a formula.
        false_alarms: rate of false incidents that is accepted: "1/day" (with dates, or ``slice_seconds``),
            "1/1000" (slices) or "fdr 10%"; None for no incidents. With ``resume`` as before if left out.
        slice_seconds: time between slices, where slices have no dates.
        deliver: where each incident is sent when it opens and when it closes, once each: "incidents.jsonl", "https://…",
            "smtp://host/?to=…" or "nats://host/subject".
        publish: where the numbers and alerts of every slice are published, "nats://host/subject" or
            "kafka://host/topic"; with arrays after "?keep=mean,std".
        alerts_per: a row of the table is an "entry", or a "region" of entries that touch: of pictures, if left out.
        progress: called with a `Progress` for every slice, once it is written; a few slices after the model.
        notify: called with sentences that a user should see.
        learned: called with every slice (`values`, `time`) and its result as soon as the model has learned it.
        load: reads what ``model.to_bytes()`` gave; `undertow.from_bytes` by default.

    Returns:
        How the run ended.

    Raises:
        RunError: it cannot start or continue; what was done before is safe.
        RunInterrupted: Ctrl-C, SIGTERM or SIGHUP, after the slice under way and with everything safe.

    Example:
        >>> summary = run("lobby.mp4", store="lobby.zarr", keep="mean,outliers")  # doctest: +SKIP
        >>> summary.slices, summary.alerts  # doctest: +SKIP
    """
    options = RunOptions(
        keep,
        precision,
        alerts,
        threshold,
        checkpoint_every,
        checkpoint_seconds,
        limit,
        resume,
        overwrite,
        new_data,
        on_bad,
        spreadsheet_safe,
        false_alarms,
        slice_seconds,
        deliver,
        publish,
        alerts_per,
    )
    _require_packages(options)
    folder = Path(store)
    opened = _open(stream, on_bad)
    try:
        private = claim(folder, resume=resume, overwrite=overwrite)
        with only_writer(private / "lock"), Interrupt() as interrupt:
            runner = Runner(
                opened,
                model or default_model(pictures(opened) > 0),
                folder,
                options,
                interrupt,
                progress,
                notify,
                learned,
            )
            runner.prepare(load)
            return runner.run()
    except (StoreError, CheckpointError) as error:
        raise RunError(str(error)) from error
    except OSError as error:
        if disk_is_full(error):
            raise RunError(f"no space is left for {folder}: free some, or name another folder with --store") from error
        raise
    finally:
        if opened is not stream:
            opened.close()


def _require_packages(options: RunOptions) -> None:
    for name in ("numcodecs", "zarr", "google_crc32c"):
        if find_spec(name) is None:
            raise RunError(f"a store needs {name}: pip install 'undertow[store]'")
    if options.alerts == "parquet" and find_spec("pyarrow") is None:
        raise RunError("alerts in Parquet need pyarrow: pip install 'undertow[table]', or use csv")
    broker = "" if options.publish is None else options.publish.partition(":")[0]
    module = {"kafka": "confluent_kafka"}.get(broker, broker)
    if broker and find_spec(module) is None:
        raise RunError(f"publishing to {shown(str(options.publish))} needs {module}: pip install 'undertow[{broker}]'")


def _open(stream: Stream | str | os.PathLike[str], on_bad: str) -> Stream:
    if not isinstance(stream, (str, os.PathLike)):
        return stream
    from undertow.sources import open_stream

    return open_stream(stream, on_bad=on_bad)
