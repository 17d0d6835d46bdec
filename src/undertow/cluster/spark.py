"""Keyed fleets on Spark: a DataFrame of entries or slices of many streams in, what the models say about them out.

The key is a shard, a hash of the stream's name; its state is one fleet, as bytes, in Spark's state store. Checkpoints
and recovery are Spark's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

from undertow.cluster.kept import BODY, HEAD, keep, taken
from undertow.cluster.packages import absent
from undertow.cluster.places import SEPARATOR
from undertow.cluster.plan import Plan, plan
from undertow.cluster.shard import END, Shard

try:
    import google.protobuf  # noqa: F401, which pyspark needs for the state store
    import pandas  # noqa: F401, which frames need
    import pyarrow  # noqa: F401, which pyspark needs for pandas
    from pyspark.sql import functions as F
    from pyspark.sql.streaming import StatefulProcessor
    from pyspark.sql.types import (
        ArrayType,
        ByteType,
        DataType,
        DateType,
        IntegerType,
        LongType,
        ShortType,
        TimestampNTZType,
        TimestampType,
    )
except ImportError as error:
    java = "; Spark itself needs Java 17 (Debian: apt install openjdk-17-jre-headless)"
    raise absent("spark", "pyspark", error, java) from None

from undertow.cluster.frames import add, frame, one_thread, span  # pandas is there

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
OUTPUTS = ("values", "slices", "incidents")
_LEARNED = (
    "ut_stream string, ut_time bigint, value array<double>, mean array<double>, std array<double>, "
    "outlier_probability array<double>, status array<string>, incidents array<string>, labels array<array<string>>"
)
_INCIDENT = (
    "id bigint, kind string, since bigint, last bigint, until bigint, since_time string, last_time string, "
    "until_time string, where string, count bigint, std double, amount double, side string, surprise double, "
    "probability double, open boolean, sentence string"
)


def apply(
    df: Any,
    *,
    key: str,
    time: str,
    modes: Any,
    value: str,
    model: Any,
    output: str = "values",
    shards: int | None = None,
    late: str | None = None,
    ttl: Any = None,
    false_alarms: str | float | None = None,
) -> Any:
    """Learn every stream of a DataFrame, streaming or not, with a model of its own.

    Args:
        df: One row an entry: stream, time, a label per mode, value; or one row a slice, packed as an array.
        key: Column with the name of the stream.
        time: Column with the time of the slice: timestamp, date or integer.
        modes: Columns with the labels of an entry, and all labels of each: ``{"src": ["A", "B"], "dst": ["A", "B"]}``.
            In place of its labels, how many a mode may have at a time, ``{"src": 16, "dst": ["A", "B"]}``: then every
            stream has its own, as they come, and one that is silent for longer than `ttl` leaves its place to others.
            Of a DataFrame that is not streaming the names alone will do, ``["src", "dst"]``: labels are found in a
            pass of their own. Of packed slices their shape, ``(12, 12)``; entries row by row.
        value: Column with the value of the entry; of packed slices an array of all of them, null where missing.
        model: What every stream gets, new: ``ut.Tracker()``, or ``ut.RobustCP(...)`` with settings that suit fleets.
        output: "values": one row an entry; "slices": one row a slice, with arrays; "incidents": one row whenever
            something opened, became another or closed.
        shards: How many; by default four for every partition that Spark shuffles into, at most 4096.
            It cannot change while a checkpoint is in use.
        late: How late a row may be, such as "10 minutes": slices are complete when the watermark has passed them.
            Needs timestamps. Without it a slice is complete as soon as its stream has a row of a later time.
        ttl: How long a stream may be silent before it is forgotten: "7 days", or a number where times are integers.
        false_alarms: False incidents that are accepted, as `undertow.Incidents` has it; with "incidents" 1/1000.

    Returns:
        A DataFrame. Its columns: key, time, and

        - values: the modes, `value`, `mean`, `std`, `outlier_probability`; of packed slices `entry` for the modes;
        - slices: `value`, `mean`, `std`, `outlier_probability` as arrays, `status`, and `incidents` as JSON;
        - incidents: `change`, and the attributes of `undertow.Incident`.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A column is not there or of a wrong type, or settings exclude each other.

    Examples:
        >>> import undertow as ut
        >>> rows = spark.readStream.table("measurements")  # doctest: +SKIP
        >>> found = apply(rows, key="router", time="time", modes={"src": 16, "dst": 16}, value="bytes",
        ...               model=ut.Tracker(), late="10 minutes", output="incidents")  # doctest: +SKIP
    """
    if output not in OUTPUTS:
        raise ValueError(f"output must be {', '.join(OUTPUTS)}, got {output!r}.")
    types = {field.name: field.dataType for field in df.schema}
    names = [key, time, value, *([one for one in modes if isinstance(one, str)] if modes is not None else [])]
    missing = [name for name in names if name not in types]
    if missing:
        raise ValueError(f"df has no column {missing[0]!r}, it has {', '.join(types)}: name one of these.")
    dates = isinstance(types[time], (TimestampType, TimestampNTZType, DateType))
    if not dates and not isinstance(types[time], (ByteType, ShortType, IntegerType, LongType)):
        raise ValueError(
            f"{time} must be a timestamp, a date or an integer, got {types[time].simpleString()}: cast it."
        )
    if late is not None and not isinstance(types[time], TimestampType):
        raise ValueError(
            f"late needs timestamps, and {time} is {types[time].simpleString()}: leave it out, or cast it."
        )
    if output == "incidents" and false_alarms is None:
        false_alarms = "1/1000"
    made = plan(
        key, time, _labelled(df, modes), value, model,
        false_alarms=false_alarms, ttl=None if ttl is None else span("ttl", ttl, dates), dates=dates,
    )  # fmt: skip
    session = df.sparkSession
    count = _shards(session, shards)
    learned = _learned(df, made, count, late, types)
    return _shown(learned, made, output, types)


def _labelled(df: Any, modes: Any) -> Any:
    """With the labels of every mode, where only names are given."""
    names = list(modes) if isinstance(modes, (list, tuple)) and all(isinstance(one, str) for one in modes) else []
    if not names:
        return modes
    if df.isStreaming:
        raise ValueError(
            f"a stream does not say which labels are to come: give them, modes={{{names[0]!r}: [...], …}}."
        )
    found = {name: df.select(name).where(F.col(name).isNotNull()).distinct().sort(name) for name in names}
    return {name: [row[0] for row in one.select(F.col(name).cast("string")).collect()] for name, one in found.items()}


def _shards(session: Any, shards: int | None) -> int:
    if shards is None:
        return min(4 * int(session.conf.get("spark.sql.shuffle.partitions")), 4096)
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        raise ValueError(f"shards must be an integer of 1 or more, got {shards!r}.")
    return shards


def _learned(df: Any, made: Plan, count: int, late: str | None, types: dict[str, DataType]) -> Any:
    """Complete slices and what is said about them, as `_LEARNED` has it."""
    stream = F.col(made.key).cast("string")
    moment = F.unix_micros(F.col(made.time).cast("timestamp")) if made.dates else F.col(made.time).cast("long")
    columns = [
        F.pmod(F.crc32(stream.cast("binary")), F.lit(count)).cast("int").alias("ut_shard"),
        stream.alias("ut_stream"),
        moment.alias("ut_time"),
        _entry(made).alias("ut_entry"),
        F.col(made.value).cast("double" if made.modes else "array<double>").alias("ut_value"),
    ]
    kept = df.where(F.col(made.key).isNotNull() & F.col(made.time).isNotNull())
    if not df.isStreaming:
        return kept.select(*columns).groupBy("ut_shard").applyInPandas(_whole(made), _LEARNED)
    if late is not None:
        kept, columns = kept.withWatermark(made.time, late), [*columns, F.col(made.time).alias("ut_event")]
    # Explicitly, for the default store of Spark cannot do it.
    df.sparkSession.conf.set(PROVIDER, ROCKSDB)
    grouped = kept.select(*columns).groupBy("ut_shard")
    mode = "None" if late is None else "EventTime"
    return grouped.transformWithStateInPandas(_Processor(made, late is not None), _LEARNED, "Append", mode)


def _entry(made: Plan) -> Any:
    """Which entry of a slice a row is, counted row by row; −1 where a label is unknown.

    Where labels come and go, all of them as one text; null where one is missing.
    """
    if not made.modes:
        return F.lit(0)
    if made.grows:
        texts = [F.col(name).cast("string") for name in made.modes]
        return F.when(reduce(and_, (text.isNotNull() for text in texts)), F.concat_ws(SEPARATOR, *texts))
    number: Any = F.lit(0)
    known: Any = F.lit(True)
    for name, labels in zip(made.modes, made.labels, strict=True):
        where = F.array_position(F.array(*map(F.lit, labels)), F.col(name).cast("string"))
        number, known = number * len(labels) + where - 1, known & (where > 0)
    return F.when(known, number).otherwise(F.lit(-1)).cast("int")


def _shown(learned: Any, made: Plan, output: str, types: dict[str, DataType]) -> Any:
    """With the user's columns, labels and types."""
    moment: Any = F.col("ut_time")
    if made.dates:
        moment = F.timestamp_micros(moment)
    own = [
        F.col("ut_stream").cast(types[made.key]).alias(made.key),
        moment.cast(types[made.time]).alias(made.time),
    ]
    arrays = ["mean", "std", "outlier_probability"]
    if output == "slices":
        coming = [
            F.element_at("labels", mode + 1).cast(ArrayType(types[name])).alias(name)
            for mode, name in enumerate(made.modes)
            if not made.labels[mode]
        ]
        return learned.select(*own, *coming, F.col("value").alias(made.value), *arrays, "status", "incidents")
    if output == "incidents":
        told = learned.select(*own, F.explode("incidents").alias("ut_told"))
        change = F.from_json("ut_told", f"change string, {_INCIDENT}").alias("ut_change")
        return told.select(made.key, made.time, change).select(made.key, made.time, "ut_change.*")
    each = learned.select(*own, "labels", F.posexplode(F.arrays_zip("value", *arrays)).alias("ut_entry", "ut_told"))
    places: list[Any] = [F.col("ut_entry").alias("entry")]
    free = [name for name, labels in zip(made.modes, made.labels, strict=True) if not labels]
    if made.modes:
        places, inner = [], F.lit(1)
        for mode, (name, labels) in reversed(list(enumerate(zip(made.modes, made.labels, strict=True)))):
            known = F.array(*map(F.lit, labels)) if labels else F.element_at("labels", mode + 1)
            index = F.floor(F.col("ut_entry") / inner) % F.size(known)
            label = F.element_at(known, index.cast("int") + 1)
            places.insert(0, label.cast(types[name]).alias(name))
            inner = inner * F.size(known)
    told = [F.col("ut_told.value").alias(made.value), *(F.col(f"ut_told.{name}").alias(name) for name in arrays)]
    shown = each.select(made.key, made.time, *places, *told)
    return shown.dropna(subset=free) if free else shown  # places that nobody has


def _whole(made: Plan) -> Any:
    """For a DataFrame that is not streaming: all slices of a shard, once."""

    def learned(rows: Any) -> Any:
        one_thread()
        shard = Shard(replace(made, ttl=None))
        add(shard, rows)
        return frame(shard.learn(END))

    return learned


class _Processor(StatefulProcessor):  # type: ignore[misc]
    """One shard per key, kept as `undertow.cluster.kept` says."""

    def __init__(self, made: Plan, timed: bool) -> None:
        self._plan, self._timed = made, timed

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._head, self._body = handle.getValueState("head", HEAD), handle.getValueState("body", BODY)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        return self._stepped(rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        return self._stepped([], timerValues)

    def close(self) -> None:
        pass

    def _stepped(self, tables: Iterable[Any], timers: Any) -> Iterator[Any]:
        one_thread()
        shard = taken(self._plan, self._head, self._body)
        for table in tables:
            add(shard, table)
        done = shard.learn(1000 * int(timers.getCurrentWatermarkInMs()) if self._timed else None)
        keep(shard, self._head, self._body)
        if self._timed and (due := shard.due) is not None:
            self._handle.registerTimer(due // 1000 + 1)
        if len(done):
            yield frame(done)
