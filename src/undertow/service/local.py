"""The same page for work in this process: a run while it goes on, or a store that is finished. Only to be looked at."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from undertow.incidents.growing import grown
from undertow.runs.store.layout import WEIGHTS
from undertow.runs.store.reader import StoredRun
from undertow.service import frames
from undertow.service.app import make_app
from undertow.service.errors import ServiceError
from undertow.service.hosted import Models, Outcome, as_text
from undertow.service.server import Server
from undertow.service.settings import Limits, Settings
from undertow.service.spec import NAME, Spec
from undertow.service.store.base import Kept, KeptIncident, Write
from undertow.service.streams import Stream, Streams
from undertow.sources.capacity import any_slots

_HISTORY = 2**30  # bytes of a finished run that the page can go back through


class LocalPage:
    """A page on loopback whose stream is filled from here; nobody can send slices to it."""

    def __init__(self, app: Any, server: Server) -> None:
        self._app, self._server = app, server
        self._stream: Stream | None = None
        self._incidents: Any = None
        self._number = 0

    @property
    def address(self) -> str:
        """Of the page."""
        return self._server.address

    @property
    def _streams(self) -> Streams:
        found: Streams = self._app.state.streams
        return found

    def begin(self, name: str, spec: Spec, *, watch: bool, first: int = 0) -> None:
        """Show a stream from slice ``first`` on; ``watch`` says whether incidents are to be found in it."""
        creating = self._streams.create(plain_name(name), spec)
        self._stream, _ = asyncio.run_coroutine_threadsafe(creating, self._app.state.loop).result()
        self._incidents = spec.incidents() if watch else None
        self._number = self._stream.next = first

    def extend(self, shape: tuple[int, ...], labels: Sequence[Any]) -> None:
        """Rows for labels that have come."""
        assert self._stream is not None
        spec = self._stream.spec
        named = tuple(None if one is None else tuple(map(str, one))[:n] for one, n in zip(labels, shape, strict=True))
        if shape != spec.shape:
            self._stream.spec = spec.widened(self._number, shape, named)
            if self._incidents is not None:
                self._incidents = grown(self._incidents, shape)
        elif named != spec.labels:
            self._stream.spec = replace(spec, labels=named)
        if self._incidents is not None and self._stream.spec is not spec:
            self._incidents.names = self._stream.spec.names()

    def tell(self, incidents: Sequence[dict[str, Any]]) -> None:
        """Incidents that were found before, as `undertow.Incident.to_json` has them."""
        assert self._stream is not None
        key = self._stream.key
        self._streams.writer.lazily([KeptIncident(key, one["id"], json.dumps(one)) for one in incidents])
        self._streams.hub.incidents_changed(self._stream.name)

    def show(self, time: Any, values: NDArray[Any], result: Any) -> None:
        """One more slice; a page that cannot keep up misses it."""
        assert self._stream is not None
        when = _text(time)
        changes = () if self._incidents is None else tuple(self._incidents.update(result, time, values))
        numbers = {
            **frames.numbers_of(values, result),
            "incidents": len(self._incidents.open) if self._incidents else 0,
        }
        outcome = Outcome(self._number, when, numbers, frames.packed(values, result), changes=changes)
        self._number = self._stream.next = self._number + 1
        text, key = orjson.dumps(numbers).decode(), self._stream.key
        writes: list[Write] = [Kept(key, outcome.sequence, when, text, outcome.body)]
        writes += [KeptIncident(key, change.incident.id, as_text(change.incident)) for change in changes]
        self._streams.writer.lazily(writes)
        self._streams.slice_done(key, outcome, 0.0)
        if changes:
            self._streams.incidents_changed(key, changes)


@contextlib.contextmanager
def local_page(port: int = 0) -> Iterator[LocalPage]:
    """A page that is there as long as the block.

    Raises:
        ServiceError: It cannot be served.
    """
    with tempfile.TemporaryDirectory(prefix="undertow-page-") as folder:
        settings = Settings(str(Path(folder) / "page.db"), port=port, limits=Limits(history_bytes=_HISTORY))
        guard = make_app(settings, Models(_nothing, _nothing), read_only=True)
        server = Server(settings, app=guard)
        ready = threading.Event()
        thread = threading.Thread(target=server.run, args=(lambda _: ready.set(),), name="undertow-page", daemon=True)
        thread.start()
        while not ready.wait(0.1):
            if not thread.is_alive():
                raise ServiceError(f"the page cannot be served on port {port}: is the port taken?")
        try:
            yield LocalPage(guard.app, server)
        finally:
            server.stop()
            thread.join()


def watched(
    page: LocalPage, name: str, source: Any, false_alarms: str | None = None, slice_seconds: float | None = None
) -> Callable[[Any, Any], None]:
    """Show what a run does.

    Args:
        page: Where.
        name: Of the stream.
        source: What `undertow.open_stream` gave.
        false_alarms: False incidents that the run accepts; None shows no incidents.
        slice_seconds: Seconds between slices without times.

    Returns:
        What `undertow.run` calls for every slice that was `learned`.
    """
    labels = tuple(None if one is None else tuple(map(str, one)) for one in source.labels)
    spec = Spec(tuple(source.shape), tuple(source.dims), labels, false_alarms, slice_seconds)
    page.begin(name, spec, watch=false_alarms is not None)

    def learned(item: Any, result: Any) -> None:
        if any_slots(source):
            page.extend(item.values.shape, source.labels)
        page.show(item.time, np.asarray(item.values, np.float64), result)

    return learned


def show_store(page: LocalPage, run: StoredRun) -> None:
    """All slices of a finished run, or as many of the newest as the page keeps."""
    if run.mean_name is None:
        raise ServiceError(
            f"{run.folder} holds no arrays to draw: run again with --keep data,mean,std,outlier_probability"
        )
    coordinates = [run.per_slice(dim) if dim in run.dataset.coords else None for dim in run.dims]
    labels = tuple(None if one is None else tuple(map(str, one)) for one in coordinates)
    first = max(0, run.length - _HISTORY // (16 * int(np.prod(run.shape))))
    page.begin(run.source, Spec(run.shape, run.dims, labels), watch=False, first=first)
    page.tell(run.incidents())
    names = [name for name in ("data", "std", "outliers", "outlier_probability") if name in run.kept]
    ranks, noises, status = (run.per_slice(name) for name in ("rank", "noise_std", "status"))
    weights = run.per_slice(WEIGHTS) if run.predictors else None
    stamps = run.times
    for start, arrays in run.blocks([*names, run.mean_name]):
        for offset in range(len(arrays[run.mean_name])):
            index = start + offset
            if index < first:
                continue
            mean = np.asarray(arrays[run.mean_name][offset], np.float64)
            blank = np.full(mean.shape, np.nan)
            one = {name: np.asarray(arrays[name][offset], np.float64) for name in names}
            data = one.get("data", mean + one["outliers"] if "outliers" in one else blank)
            result = SimpleNamespace(
                mean=mean,
                std=one.get("std", blank),
                outlier_probability=one.get("outlier_probability", np.zeros(mean.shape)),
                rank=int(ranks[index]),
                noise_std=float(noises[index]),
                weights={} if weights is None else dict(zip(run.predictors, map(float, weights[index]), strict=True)),
                status=SimpleNamespace(codes=tuple(code for code in str(status[index]).split() if code != "ok")),
            )
            page.show(stamps[index], data, result)


def plain_name(text: str) -> str:
    """A name for a stream that comes from a path or an address."""
    stem = Path(text).name or "stream"
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).lstrip("._-")[:64]
    return kept if re.fullmatch(NAME, kept) else "stream"


def _text(time: Any) -> str:
    """A date as the page shows it; nothing where slices have none."""
    if isinstance(time, np.datetime64) and not np.isnat(time):
        return f"{time.astype('datetime64[ms]')}Z"
    return ""


def _nothing(*_: Any) -> Any:
    raise ServiceError("this page only shows what a run does")
