"""A moving example: two networks and a grid of sensors, with gaps, anomalies, and rows that fail now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.client import Client, ClientError
from undertow.lab.synthetic.streams import traffic

_LOG = logging.getLogger("undertow.service")
_PAUSE = 0.25
_FAILS_EVERY, _FAILS_FOR = 90, 12


def start(address: str, token: str | None) -> threading.Thread:
    """Feed the service from a thread of this process."""
    thread = threading.Thread(target=_feed, args=(address, token), name="undertow-demo", daemon=True)
    thread.start()
    return thread


def network(seed: int) -> Iterator[NDArray[np.float64]]:
    """Days of traffic between twelve routers, one after the other; every now and then one router fails."""
    draw, number = np.random.default_rng(seed), 0
    day = traffic(slices=288, seed=seed).values[:, :12, :12]
    while True:
        for values in day:
            x = values.copy()
            if number % _FAILS_EVERY >= _FAILS_EVERY - _FAILS_FOR:
                x[int(number // _FAILS_EVERY + seed) % len(x)] *= 0.05
            number += 1
            yield x * draw.lognormal(0.0, 0.01, x.shape)


def sensors(seed: int) -> Iterator[NDArray[np.float64]]:
    """A wave through 6×5×4 sensors, a tenth of them silent at any time."""
    draw, shape, number = np.random.default_rng(seed), (6, 5, 4), 0
    place = np.indices(shape)
    while True:
        x = 20 + 3 * np.sin(number / 12 + place[0] / 2) * np.cos(place[1] / 3) + place[2] + draw.normal(0, 0.2, shape)
        if number % 70 >= 64:
            x[2, 3, 1] += 8
        x[draw.random(shape) < 0.1] = np.nan
        number += 1
        yield x


def _feed(address: str, token: str | None) -> None:
    routers = [f"router-{number:02d}" for number in range(12)]
    made: dict[str, tuple[Iterator[NDArray[np.float64]], dict[str, Any]]] = {
        "network-east": (network(0), {"dims": ["origin", "destination"], "labels": [routers, routers]}),
        "network-west": (network(3), {"dims": ["origin", "destination"], "labels": [routers, routers]}),
        "sensors": (sensors(0), {"dims": ["row", "column", "height"]}),
    }
    try:
        with Client(address, token) as client:
            shapes = {"sensors": (6, 5, 4)}
            numbers = {}
            for name, (_, settings) in made.items():
                found = client.create(name, shapes.get(name, (12, 12)), false_alarms="1/500", **settings)
                numbers[name] = found["next"]
            while True:
                for name, (slices, _) in made.items():
                    client.push(name, next(slices), sequence=numbers[name], fields="")
                    numbers[name] += 1
                time.sleep(_PAUSE)
    except ClientError as error:
        _LOG.info("demo ended", extra={"fields": {"reason": str(error)}})
