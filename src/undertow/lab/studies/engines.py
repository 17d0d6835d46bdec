"""What an engine costs: the same streams through one process, through Spark and through Ray, on this machine.

All of them get the same tables, one per slice with a row an entry or a row a slice (packed), learn them with the same
shards, and hand out every slice with its mean, standard deviation and probabilities. Slices before `WARM` are not
counted: programs are compiled, and windows fill. State bytes are those of a shard after the last slice. Processor time
is that of this process and all below it, Java's and the workers' too: it means something beside other work.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import undertow as ut
from undertow.cluster import frames
from undertow.cluster.partition import shard_of
from undertow.cluster.plan import plan
from undertow.cluster.shard import Shard
from undertow.lab.reporter import Reporter
from undertow.lab.studies.fleet import slices_of_members
from undertow.lab.studies.table import StudyTable

WARM = 4
LOOK_EVERY = 0.2
"""Seconds between looks at Spark's progress."""
CP: dict[str, Any] = {"max_rank": 2, "window": 4}
COLUMNS = {"key": "stream", "time": "time", "value": "value"}


def tables_of(streams: int, slices: int, shape: tuple[int, int], packed: bool, seed: int) -> tuple[list[Any], Any]:
    """One DataFrame per slice, and the modes."""
    import pandas

    x = slices_of_members(streams, slices, shape, seed).astype(np.float64)
    names = np.array([f"s{number}" for number in range(streams)])
    if packed:
        given = [pandas.DataFrame({"stream": names, "value": list(one.reshape(streams, -1))}) for one in x]
        modes: Any = shape
    else:
        stream, row, column = (index.ravel() for index in np.indices((streams, *shape)))
        columns = {"stream": names[stream], "row": row, "column": column}
        given = [pandas.DataFrame({**columns, "value": one.ravel()}).dropna() for one in x]
        modes = {"row": range(shape[0]), "column": range(shape[1])}
    return [one.assign(time=number) for number, one in enumerate(given)], modes


@dataclass
class Took:
    """What every batch took.

    Attributes:
        seconds: By the clock.
        processor: Of all processes together, by the batches that were done then; known for some.
    """

    seconds: list[float] = field(default_factory=list)
    processor: dict[int, float] = field(default_factory=dict)

    def batch(self) -> float:
        """Median by the clock."""
        return float(np.median(self.seconds[WARM:]))

    def of_processors(self) -> float:
        """Processor time of a batch on average."""
        known = sorted(done for done in self.processor if done >= WARM)
        first, last = known[0], known[-1]
        return (self.processor[last] - self.processor[first]) / max(last - first, 1)


def processor_seconds() -> float:
    """Of this process and of all that it has started, directly or not; Linux only."""
    tick, parents, used = os.sysconf("SC_CLK_TCK"), {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            numbers = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        own = int(path.parent.name)
        parents[own], used[own] = int(numbers[1]), sum(map(int, numbers[11:15])) / tick

    def is_ours(one: int) -> bool:
        while one in parents and one != os.getpid():
            one = parents[one]
        return one == os.getpid()

    return sum(seconds for one, seconds in used.items() if is_ours(one))


def alone(tables: Sequence[Any], settings: dict[str, Any], shards: int) -> tuple[Took, int]:
    """In this process; and bytes of all shards."""
    made = plan(**settings, dates=False)
    kept, took = [Shard(made) for _ in range(shards)], Took()
    for done, table in enumerate(tables, 1):
        begun = time.perf_counter()
        rows = frames.numbered(table, made)
        number = rows["ut_stream"].map(lambda name: shard_of(name, shards)).to_numpy()
        for which, shard in enumerate(kept):
            frames.add(shard, rows[number == which])
            frames.frame(shard.learn(None))
        took.seconds.append(time.perf_counter() - begun)
        took.processor[done] = processor_seconds()
    return took, sum(len(shard.to_bytes()) for shard in kept)


def on_ray(tables: Sequence[Any], settings: dict[str, Any], shards: int, processes: int) -> Took:
    """A checkpoint after each batch, as Spark has it."""
    import ray

    ray.init(num_cpus=max(processes, shards), include_dashboard=False, log_to_driver=False, object_store_memory=2**28)
    took = Took()
    try:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            answers = ut.ray.apply(tables, **settings, folder=folder, shards=shards, every=1, dates=False)
            for done, _ in enumerate(answers, 1):
                took.seconds.append(time.perf_counter() - begun)
                took.processor[done] = processor_seconds()
                begun = time.perf_counter()
    finally:
        ray.shutdown()
    return took


def on_spark(tables: Sequence[Any], settings: dict[str, Any], shards: int, processes: int) -> Took:
    """Micro-batches of one slice each; results go to Spark's own sink that does nothing."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    given = {"spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    given |= {"spark.sql.shuffle.partitions": str(processes), "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master(f"local[{processes}]")
    for name, value in given.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "in"
            place.mkdir()
            for number, table in enumerate(tables):
                path = place / f"{number:05}.parquet"
                table.to_parquet(path, index=False)
                os.utime(path, (1.8e9 + number, 1.8e9 + number))
            schema = session.read.parquet(str(place)).schema
            rows = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
            found = ut.spark.apply(rows, **settings, shards=shards, output="slices")
            sink = found.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
            query = sink.trigger(availableNow=True).start()
            took = Took()
            while not query.awaitTermination(LOOK_EVERY):
                took.processor.setdefault(len(query.recentProgress), processor_seconds())
            progress = {one["batchId"]: one["durationMs"]["triggerExecution"] for one in query.recentProgress}
            took.seconds = [progress[number] / 1000 for number in sorted(progress)][: len(tables)]
            return took
    finally:
        session.stop()


def engines(
    names: Sequence[str],
    streams: int,
    slices: int,
    shape: tuple[int, int],
    model: str,
    shards: int,
    processes: int,
    packed: bool,
    seed: int,
    bars: Reporter,
) -> StudyTable:
    """One line for each: slices per second, and the price against one process.

    Args:
        names: Of "spark" and "ray".
        streams: How many.
        slices: Of each that are counted.
        shape: Of a slice.
        model: "cp" or "tracker".
        shards: As many for all.
        processes: Tasks or actors at a time.
        packed: One row a slice, not a row an entry.
        seed: Of the streams.
        bars: Shows progress.
    """
    tables, modes = tables_of(streams, WARM + slices, shape, packed, seed)
    made: Any = ut.Tracker() if model == "tracker" else ut.RobustCP("fast", **CP)
    settings = {**COLUMNS, "modes": modes, "model": made}
    usual, size = alone(tables, settings, shards)
    ways: dict[str, Callable[..., Took]] = {"spark": on_spark, "ray": on_ray}
    found = {"one process": usual}
    for name in names:
        bars.say(f"{name} begins")
        found[name] = ways[name](tables, settings, shards, processes)
    kind = "packed" if packed else "a row an entry"
    sizes = "×".join(map(str, shape))
    table = StudyTable(
        f"{streams} streams of {sizes}, {kind}, {model}, {shards} shards: {size / streams:,.0f} bytes of state each",
        ("", "median batch, s", "slices/s", "of one process", "processor, ms a slice", "of one process"),
    )
    for name, took in found.items():
        own, processor = took.batch(), took.of_processors()
        price = f"{processor / max(usual.of_processors(), 1e-9):.1f} times"
        each = f"{1000 * processor / streams:.2f}"
        table.rows.append((name, f"{own:.2f}", f"{streams / own:,.0f}", f"{usual.batch() / own:.2f}", each, price))
    return table
