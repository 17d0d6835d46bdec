"""How a service stands load and ``kill -9``: ``python -m undertow.service.load`` feeds many streams.

What it promises is checked at the end: nothing acknowledged is lost, nothing is learned twice; what every stream gave
is, to rounding, what a tracker gives that was never disturbed, with the same incidents; and every incident was
delivered once when it opened and once when it closed. If not, the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.client import AsyncClient, ClientError
from undertow.service import times
from undertow.service.load_check import ROUNDING, compared

_SERVE = "from undertow.cli import main; main()"
_START = 1_700_000_000
EACH = 50
"""Streams that share a client: it has a hundred connections."""


def slice_of(stream: int, number: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The same whenever it is asked for: a wave with noise and gaps; in every fifth stream a row fails."""
    draw = np.random.default_rng([stream, number])
    rows = 1 + np.arange(shape[0]) % 5
    x = 50 * np.multiply.outer(rows, 1 + np.arange(shape[1]) % 3) * (1 + 0.3 * np.sin(number / 9 + stream))
    x = x + draw.normal(size=shape)
    x[draw.random(shape) < 0.1] = np.nan
    if stream % 5 == 0 and 40 <= number < 46:
        x[stream % shape[0]] += 300
    return np.asarray(x, np.float64)


class Load:
    """One run of the load.

    Args:
        streams: How many.
        seconds: How long they are fed.
        kills: How often the service is killed meanwhile.
        shape: Of a slice.
        store: Of the service.
        port: Of the service.
        known: Slices that every stream has learned before the clock starts: programs are compiled by then, and what
            fails soon after is an incident.
    """

    def __init__(
        self, streams: int, seconds: float, kills: int, shape: tuple[int, ...], store: str, port: int, known: int = 0
    ) -> None:
        self.streams, self.seconds, self.kills, self.shape, self.known = streams, seconds, kills, shape, known
        self.store, self.address, self.port = store, f"http://127.0.0.1:{port}", port
        self.delivered, self.log = f"{store}.jsonl", f"{store}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.acknowledged = [0] * streams
        self.latency: list[float] = []
        self.slowest_restart = 0.0

    def start(self) -> None:
        """The service, as a process of its own."""
        command = [sys.executable, "-c", _SERVE, "serve", "--store", self.store, "--port", str(self.port)]
        command += ["--deliver", self.delivered]
        if self.process is not None:
            self.process.wait()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

    async def run(self) -> dict[str, Any]:
        """Feed, kill, and feed again."""
        self.start()
        async with contextlib.AsyncExitStack() as held:
            several = [AsyncClient(self.address) for _ in range(0, self.streams, EACH)]
            for client in several:
                await held.enter_async_context(client)
            client = several[0]
            await _answering(client)
            for number in range(self.streams):
                await client.create(name_of(number), self.shape, false_alarms="1/10000")
            await asyncio.gather(*self._feeding(several, slices=self.known))
            self.latency.clear()
            started = time.monotonic()
            feeding = self._feeding(several, end=started + self.seconds)
            for kill in range(self.kills):
                await asyncio.sleep(max(0.0, started + self.seconds * (kill + 1) / (self.kills + 1) - time.monotonic()))
                assert self.process is not None
                self.process.kill()
                before = time.monotonic()
                await asyncio.to_thread(self.start)
                await _answering(client)
                self.slowest_restart = max(self.slowest_restart, time.monotonic() - before)
            await asyncio.gather(*feeding)
            spent = time.monotonic() - started
            found = await client.get("/api/streams")
            reached = [one["next"] for one in sorted(found["streams"], key=lambda one: one["name"])]
            # What was sent when time was up may have been accepted, and its answer lost.
            beyond = [there - known for there, known in zip(reached, self.acknowledged, strict=True)]
            self.acknowledged = reached
        return {
            "streams": self.streams,
            "kills": self.kills,
            "slices": len(self.latency),
            "slices_per_second": round(len(self.latency) / spent, 1),
            "p50_ms": round(float(np.percentile(self.latency, 50)) * 1e3, 1),
            "p99_ms": round(float(np.percentile(self.latency, 99)) * 1e3, 1),
            "slowest_restart_s": round(self.slowest_restart, 1),
            "lost": sum(max(0, -one) for one in beyond),
            "twice": sum(max(0, one - 1) for one in beyond),
        }

    def _feeding(
        self, several: list[AsyncClient], end: float = math.inf, slices: float = math.inf
    ) -> list[asyncio.Task[None]]:
        """All streams at the same time."""
        numbers = range(self.streams)
        return [asyncio.create_task(self._feed(several[one // EACH], one, end, slices)) for one in numbers]

    async def _feed(self, client: AsyncClient, stream: int, end: float, slices: float) -> None:
        """One slice after the other, each sent again until it is acknowledged."""
        while time.monotonic() < end and self.acknowledged[stream] < slices:
            number, began = self.acknowledged[stream], time.monotonic()
            values, when = slice_of(stream, number, self.shape), _START + 60 * number
            try:
                await client.push(name_of(stream), values, sequence=number, time=when, fields="")
            except ClientError as error:
                if error.status in (0, 429, 503):  # killed for longer than the client tries
                    continue
                raise
            self.acknowledged[stream] += 1
            self.latency.append(time.monotonic() - began)

    def end(self) -> None:
        """As an operator ends it."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(120)

    def compared(self) -> dict[str, Any]:
        """What the streams gave beside trackers that were never disturbed."""

        def given(stream: int, number: int) -> tuple[str, NDArray[np.float64]]:
            return times.checked(_START + 60 * number) or "", slice_of(stream, number, self.shape)

        return compared(self.store, [name_of(one) for one in range(self.streams)], self.acknowledged, given)

    async def deliveries(self) -> dict[str, int]:
        """Incidents of all streams, and what was delivered of them: each opening and each closing once, or not."""
        expected = set()
        async with AsyncClient(self.address) as client:
            for number in range(self.streams):
                for one in (await client.get(f"/api/streams/{name_of(number)}/incidents"))["incidents"]:
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


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """From the command line; prints what was found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--shape", default="12,12")
    parser.add_argument("--known", type=int, default=36, help="slices of each stream before the clock starts")
    parser.add_argument("--port", type=int, default=8766)
    given = parser.parse_args(arguments)
    shape = tuple(int(size) for size in given.shape.split(","))
    with tempfile.TemporaryDirectory() as folder:
        store = os.fspath(Path(folder) / "load.db")
        load = Load(given.streams, given.seconds, given.kills, shape, store, given.port, given.known)
        try:
            found = asyncio.run(load.run())
            print(json.dumps(found), flush=True)  # the rest takes a while
            found |= asyncio.run(load.deliveries())
            load.end()
            found |= load.compared()
        except ClientError:
            print(Path(load.log).read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            if load.process is not None:
                load.process.kill()
                load.process.wait()
    print(json.dumps(found))
    return found


def broken(found: dict[str, Any]) -> list[str]:
    """Promises that were not kept."""
    none = ("lost", "twice", "not_kept", "streams_whose_incidents_differ", "deliveries_missing", "delivered_twice")
    promises = [f"{name}: {found[name]}" for name in none if found[name]]
    if not found["largest_difference"] <= ROUNDING:
        promises.append(f"largest_difference: {found['largest_difference']:.1e}, more than {ROUNDING:.0e}")
    return promises


if __name__ == "__main__":
    promises = broken(main())
    for one in promises:
        print(f"not as promised: {one}", file=sys.stderr)
    sys.exit(bool(promises))
