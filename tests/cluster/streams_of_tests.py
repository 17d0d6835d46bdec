"""Many small streams as rows, and what one undisturbed process makes of them."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd

import undertow as ut
from undertow.cluster import frames
from undertow.cluster.partition import shard_of
from undertow.cluster.plan import plan
from undertow.cluster.shard import END, Shard

MODES = {"src": ["a", "b", "c", "d"], "dst": ["x", "y", "z"]}
NAMES = {"key": "router", "time": "at", "value": "bytes"}
START, STEP = pd.Timestamp("2026-03-01"), pd.Timedelta(minutes=5)


def model(kind):
    return ut.Tracker() if kind == "tracker" else ut.RobustCP("fast", max_rank=2, window=4)


def rows(streams, slices, seed=102, outliers=0.02):
    """One table per slice; a tenth of the entries is missing, some are gross outliers."""
    draw = np.random.default_rng(seed)
    base = draw.normal(size=(streams, 4, 1)) * draw.normal(size=(streams, 1, 3)) * 3
    entries = pd.MultiIndex.from_product([[f"r{one}" for one in range(streams)], *MODES.values()])
    tables = []
    for number in range(slices):
        x = base * (2 + np.sin(number)) + 0.1 * draw.normal(size=base.shape)
        x = x + 50 * (draw.random(x.shape) < outliers)
        table = pd.DataFrame({"bytes": x.ravel()}, index=entries).reset_index(names=["router", *MODES])
        table["at"] = START + number * STEP
        tables.append(table[draw.random(x.size) > 0.1].sample(frac=1, random_state=number))
    return tables


def as_a_worker(*arguments, **more):
    """`undisturbed`, with one thread as the workers of engines have it.

    With several a tracker's standard deviations round to others that are up to a hundredth away.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), frames.one_thread) as process:
        return process.submit(undisturbed, *arguments, **more).result()


def undisturbed(tables, kind, modes=MODES, shards=1, **more):
    """By stream and time, sorted: arrays of mean, std and probability.

    In one process, with as many shards as the engine has: equal batches round in the same way, so that no decision
    about a component falls differently.
    """
    made = plan(modes=modes, model=model(kind), **NAMES, **more)
    parts = []
    for which in range(shards):
        shard = Shard(made)
        for table in tables:
            rows = frames.numbered(table, made)
            own = rows["ut_stream"].map(lambda name, which=which: shard_of(name, shards) == which)
            frames.add(shard, rows[own.astype(bool)])
            parts.append(frames.frame(shard.learn(None)))
        parts.append(frames.frame(shard.learn(END)))
    return pd.concat(parts).sort_values(["ut_stream", "ut_time"], ignore_index=True)
