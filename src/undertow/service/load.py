"""How a service stands load and ``kill -9``: ``python -m undertow.service.load`` feeds many streams.

What it promises is checked at the end: nothing acknowledged is lost, nothing is learned twice; what every stream gave
is, to rounding, what a tracker gives that was never disturbed, with the same incidents (with ``--together 1``: to the
bit); and every incident was delivered once when it opened and once when it closed. If not, the exit code is 1.

It ends within its time limit: where the machine is slow, fewer streams are compared, and the answer says how many.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from undertow.client import ClientError
from undertow.service.load_check import ROUNDING
from undertow.service.load_run import Load
from undertow.service.settings import Limits

FIRST_PART = 0.4
"""Of the time limit: for the first slices of all streams."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """From the command line; prints what was found as JSON, and progress to standard error."""
    given = _arguments(arguments)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        shape = tuple(int(size) for size in given.shape.split(","))
        load = Load(given.streams, shape, os.fspath(Path(folder) / "load.db"), given.port, say, given.together)
        try:
            found = asyncio.run(_fed(load, given, say))
            load.end()
            found |= load.compared(given.limit - (time.monotonic() - started))
            found |= {"together": given.together, "seconds": round(time.monotonic() - started)}
        except ClientError:
            print(Path(load.log).read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            if load.process is not None:
                load.process.kill()
                load.process.wait()
    print(json.dumps(found))
    return found


async def _fed(load: Load, given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    try:
        await load.begin()
        await load.known(given.known, FIRST_PART * given.limit)
        found: dict[str, Any] = {"streams": given.streams, "known": min(load.acknowledged)}
        if given.paced:
            found |= await load.paced(given.paced, given.every)
            say(json.dumps(found))
        found |= await load.killed(given.seconds, given.kills)
        say(json.dumps(found))
        return found | await load.deliveries()
    finally:
        await load.leave()


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m undertow.service.load", description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120, help="in which they are fed as fast as they are answered")
    parser.add_argument("--kills", type=int, default=5, help="meanwhile")
    parser.add_argument("--paced", type=float, default=60, help="seconds of a steady pace, before that; 0 for none")
    parser.add_argument("--every", type=float, default=30, help="seconds between two slices of a stream then")
    parser.add_argument("--shape", default="12,12")
    parser.add_argument("--known", type=int, default=36, help="slices of each stream before the clock starts")
    parser.add_argument("--together", type=int, default=Limits().together, help="streams that are stepped in one call")
    parser.add_argument("--limit", type=float, default=600, help="seconds in all")
    parser.add_argument("--port", type=int, default=8766)
    return parser.parse_args(arguments)


def broken(found: dict[str, Any]) -> list[str]:
    """Promises that were not kept."""
    none = ("lost", "twice", "not_kept", "streams_whose_incidents_differ", "deliveries_missing", "delivered_twice")
    promises = [f"{name}: {found[name]}" for name in none if found[name]]
    what, most = ("largest_difference", 0.0) if found["together"] == 1 else ("typical_of_worst_stream", ROUNDING)
    if not found[what] <= most:
        promises.append(f"{what}: {found[what]:.1e} error bars, more than {most}")
    if not found["deliveries_expected"]:
        promises.append("no incident arose, so none was delivered: raise --known or --seconds")
    if not found["streams_compared"]:
        promises.append("no stream was compared within the time limit: raise --limit")
    return promises


if __name__ == "__main__":
    promises = broken(main())
    for one in promises:
        print(f"not as promised: {one}", file=sys.stderr)
    sys.exit(bool(promises))
