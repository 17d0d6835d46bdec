"""One run of the load: streams that are fed at a steady pace, then as fast as they are answered, through kills."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.client import AsyncClient, ClientError
from undertow.service import times
from undertow.service.load_check import compared

_SERVE = "from undertow.cli import main; main()"
_START = 1_700_000_000
EACH = 50
"""Streams that share a client: it has a hundred connections."""
TOLD_EVERY = 10.0
"""Seconds between two lines of progress."""
FAILING, STAGGERED, LASTS, FAILING_FROM = 5, 12, 3, 32
"""In one of this number of streams a row fails, up to this number of slices later than in others, for a few slices. Not
before the last number: until then no incident opens."""


def slice_of(stream: int, number: int, shape: tuple[int, ...], failing: int = FAILING_FROM) -> NDArray[np.float64]:
    """The same whenever it is asked for: a wave with noise and gaps; in every fifth stream a row fails for a while.

    From slice `failing` on, not in all of them at the same time: whenever the service is killed, some incidents open,
    last or close.
    """
    draw = np.random.default_rng([stream, number])
    rows = 1 + np.arange(shape[0]) % 5
    x = 50 * np.multiply.outer(rows, 1 + np.arange(shape[1]) % 3) * (1 + 0.3 * np.sin(number / 9 + stream))
    x = x + draw.normal(size=shape)
    x[draw.random(shape) < 0.1] = np.nan
    if stream % FAILING == 0 and 0 <= number - (failing + stream // FAILING % STAGGERED) < LASTS:
        x[stream % shape[0]] += 300
    return np.asarray(x, np.float64)


class Load:
    """One run of the load.

    Args:
        streams: How many.
        shape: Of a slice.
        store: Of the service.
        port: Of the service.
        say: Takes lines of progress.
        together: Streams that are stepped in one call.
    """

    def __init__(
        self,
        streams: int,
        shape: tuple[int, ...],
        store: str,
        port: int,
        say: Callable[[str], None] = lambda _: None,
        together: int = 64,
    ) -> None:
        self.streams, self.shape, self.say, self.together = streams, shape, say, together
        self.store, self.address, self.port = store, f"http://127.0.0.1:{port}", port
        self.delivered, self.log = f"{store}.jsonl", f"{store}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.acknowledged = [0] * streams
        self.latency: list[float] = []
        self.failing = sys.maxsize  # not before the first slices are known
        self._clients: list[AsyncClient] = []

    def start(self) -> None:
        """The service, as a process of its own."""
        command = [sys.executable, "-c", _SERVE, "serve", "--store", self.store, "--port", str(self.port)]
        command += ["--deliver", self.delivered, "--limit", f"together={self.together}"]
        if self.process is not None:
            self.process.wait()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

    async def begin(self) -> None:
        """The service with all its streams."""
        self.start()
        self._clients = [AsyncClient(self.address) for _ in range(0, self.streams, EACH)]
        await _answering(self._clients[0])
        for number in range(self.streams):
            await self._clients[0].create(name_of(number), self.shape, false_alarms="1/10000")

    async def leave(self) -> None:
        """No more requests."""
        for client in self._clients:
            await client.close()

    async def known(self, slices: int, seconds: float) -> None:
        """Every stream learns its first slices, within this time: programs are compiled by then."""
        async with self._progress("first slices"):
            await asyncio.gather(*self._feeding(end=time.monotonic() + seconds, slices=slices))
        self.failing = max(FAILING_FROM, *self.acknowledged)
        self.latency.clear()

    async def paced(self, seconds: float, every: float) -> dict[str, Any]:
        """Each stream has a slice at its own moments, ``every`` seconds apart, whether the last one is done or not."""
        started = time.monotonic()
        late: list[float] = []

        async def feed(stream: int) -> None:
            due = started + every * stream / self.streams
            while due < started + seconds:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self._push(stream)
                late.append(time.monotonic() - due)
                due += every

        async with self._progress(f"a slice of each stream every {every:.0f} s"):
            await asyncio.gather(*map(feed, range(self.streams)))
        self.latency.clear()
        return {f"paced_{name}": value for name, value in _speed(late, time.monotonic() - started).items()}

    async def killed(self, seconds: float, kills: int) -> dict[str, Any]:
        """Fed as fast as the service answers; it is killed meanwhile, and started again."""
        slowest, started = 0.0, time.monotonic()
        async with self._progress(f"as fast as possible, {kills} kills"):
            feeding = self._feeding(end=started + seconds)
            for kill in range(kills):
                await asyncio.sleep(max(0.0, started + seconds * (kill + 1) / (kills + 1) - time.monotonic()))
                assert self.process is not None
                self.process.kill()
                before = time.monotonic()
                await asyncio.to_thread(self.start)
                await _answering(self._clients[0])
                slowest = max(slowest, time.monotonic() - before)
            await asyncio.gather(*feeding)
        spent = time.monotonic() - started
        found = await self._clients[0].get("/api/streams")
        reached = [one["next"] for one in sorted(found["streams"], key=lambda one: one["name"])]
        # What was sent when time was up may have been accepted, and its answer lost.
        beyond = [there - known for there, known in zip(reached, self.acknowledged, strict=True)]
        self.acknowledged = reached
        return {
            "kills": kills,
            **_speed(self.latency, spent),
            "slowest_restart_s": round(slowest, 1),
            "lost": sum(max(0, -one) for one in beyond),
            "twice": sum(max(0, one - 1) for one in beyond),
        }

    def _feeding(self, end: float = math.inf, slices: float = math.inf) -> list[asyncio.Task[None]]:
        """All streams at the same time."""
        return [asyncio.create_task(self._feed(one, end, slices)) for one in range(self.streams)]

    async def _feed(self, stream: int, end: float, slices: float) -> None:
        """One slice after the other."""
        while time.monotonic() < end and self.acknowledged[stream] < slices:
            await self._push(stream)

    async def _push(self, stream: int) -> None:
        """The next slice, sent again until it is acknowledged."""
        number, began = self.acknowledged[stream], time.monotonic()
        values, when = slice_of(stream, number, self.shape, self.failing), _START + 60 * number
        client = self._clients[stream // EACH]
        while self.acknowledged[stream] == number:
            try:
                await client.push(name_of(stream), values, sequence=number, time=when, fields="")
            except ClientError as error:
                if error.status in (0, 429, 503):  # killed for longer than the client tries
                    continue
                raise
            self.acknowledged[stream] += 1
        self.latency.append(time.monotonic() - began)

    @contextlib.asynccontextmanager
    async def _progress(self, phase: str) -> AsyncIterator[None]:
        """Lines of progress meanwhile."""

        async def tell() -> None:
            while True:
                self.say(f"{phase}: {sum(self.acknowledged)} slices, {min(self.acknowledged)} at least of each stream")
                await asyncio.sleep(TOLD_EVERY)

        task = asyncio.create_task(tell())
        try:
            yield
        finally:
            task.cancel()

    def end(self) -> None:
        """As an operator ends it."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(120)

    def compared(self, seconds: float) -> dict[str, Any]:
        """What the streams gave beside trackers that were never disturbed; of as many as there is time for."""

        def given(stream: int, number: int) -> tuple[str, NDArray[np.float64]]:
            return times.checked(_START + 60 * number) or "", slice_of(stream, number, self.shape, self.failing)

        names = [name_of(one) for one in range(self.streams)]
        return compared(self.store, names, self.acknowledged, given, self.together, seconds, self.say)

    async def deliveries(self) -> dict[str, int]:
        """Incidents of all streams, and what was delivered of them: each opening and each closing once, or not."""
        expected = set()
        for number in range(self.streams):
            for one in (await self._clients[0].get(f"/api/streams/{name_of(number)}/incidents"))["incidents"]:
                ends = ("opened",) if one["until"] is None else ("opened", "closed")
                expected |= {(name_of(number), one["id"], what) for what in ends}
        await asyncio.sleep(2)  # what was found last is on its way
        there = Path(self.delivered)
        lines = [json.loads(line) for line in there.read_text().splitlines()] if there.exists() else []
        delivered = [(one["stream"], one["incident"]["id"], one["what"]) for one in lines]
        return {
            "deliveries_expected": len(expected),
            "deliveries_missing": len(expected - set(delivered)),
            "delivered_twice": len(delivered) - len(set(delivered)),
        }


def name_of(stream: int) -> str:
    """Sorted as numbers are."""
    return f"load-{stream:05d}"


async def _answering(client: AsyncClient) -> None:
    for _ in range(1200):
        try:
            await client.get("/readyz")
            return
        except ClientError:
            await asyncio.sleep(0.05)
    raise TimeoutError("the service did not start within minutes")


def _speed(latency: Sequence[float], seconds: float) -> dict[str, Any]:
    """Slices, how many a second, and how long each took."""
    if not latency:
        return {"slices": 0, "slices_per_second": 0.0, "p50_ms": None, "p99_ms": None}
    half, most = (round(float(np.percentile(latency, part)) * 1e3, 1) for part in (50, 99))
    return {
        "slices": len(latency),
        "slices_per_second": round(len(latency) / seconds, 1),
        "p50_ms": half,
        "p99_ms": most,
    }
