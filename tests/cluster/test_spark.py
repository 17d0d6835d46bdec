"""Fleets on Spark: batch, streaming, killed. Without Spark: its absence, in a sentence."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pages
import psutil
import pytest
import streams_of_tests as streams
from needs import required

import undertow as ut
from undertow.cluster.versions import STATE_VERSION

HERE = Path(__file__).parent
HAVE_JAVA = shutil.which("java") is not None


@pytest.fixture(scope="module")
def spark():
    _need_spark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE)]))
        session = import_module("spark_job").session("local[2]")
        yield session
        session.stop()


@pytest.mark.parametrize("package", ["pyspark", "google", "google.protobuf", "pyarrow", "pandas"])
def test_what_is_absent_is_a_sentence_with_the_command(monkeypatch, package):
    """One package, whichever of the others are installed here."""
    for other in ("google", "google.protobuf", "pyarrow", "pandas"):
        try:
            import_module(other)
        except ImportError:
            monkeypatch.setitem(sys.modules, other, ModuleType(other))
    if package == "google":
        monkeypatch.delitem(sys.modules, "google.protobuf")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("undertow.cluster.packages.find_spec", lambda engine: None if engine == package else object())
    monkeypatch.delitem(sys.modules, "undertow.cluster.spark", raising=False)
    name = "protobuf" if package.startswith("google") else package
    with pytest.raises(ImportError, match=rf"undertow.spark needs {name}: pip install 'undertow\[spark\]'; .*Java 17"):
        _ = ut.spark


def test_importing_undertow_imports_no_engine():
    code = "import sys, undertow; print([name for name in ('pyspark', 'ray', 'jax') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.full
def test_a_table_learned_at_once_is_as_in_one_process(spark):
    tables = streams.rows(6, 6)
    rows = spark.createDataFrame(import_module("pandas").concat(tables))
    found = ut.spark.apply(rows, modes=list(streams.MODES), model=streams.model("cp"), shards=2, **streams.NAMES)
    assert found.columns == ["router", "at", "src", "dst", "bytes", "mean", "std", "outlier_probability"]
    found = found.toPandas().sort_values(["router", "at", "src", "dst"])
    wanted = streams.undisturbed(tables, "cp")
    assert len(found) == 6 * 6 * 12
    for name in ("mean", "std", "outlier_probability"):
        np.testing.assert_allclose(found[name], np.concatenate(wanted[name].tolist()), rtol=1e-3, atol=1e-3)


@pytest.mark.full
def test_messages_of_kafka_become_slices_as_the_page_says(spark, monkeypatch):
    """But for Spark's connector, which is not here: the table is what it gives, one column of bytes."""
    tables = streams.rows(2, 3)
    rows = import_module("pandas").concat(tables).rename(columns={"router": "stream", "at": "time", "bytes": "value"})
    messages = spark.createDataFrame([(bytearray(one.encode()),) for one in rows.to_json(
        orient="records", lines=True, date_format="iso").splitlines()], "value binary")  # fmt: skip

    class Reader:
        def __getattr__(self, name):
            return lambda *_: messages if name == "load" else self

    class Session:
        readStream = Reader()

    page = pages.recipe(pages.ROOT / "docs/how-to/brokers.md", "readStream")
    monkeypatch.setattr(ut, "Tracker", lambda: streams.model("cp"))
    names = {"spark": Session(), "ut": ut, "sources": streams.MODES["src"], "destinations": streams.MODES["dst"]}
    exec(compile(page, "brokers.md", "exec"), names)
    found = names["found"].toPandas().sort_values(["stream", "time", "src", "dst"])
    wanted = streams.undisturbed(tables, "cp")
    np.testing.assert_allclose(found["mean"], np.concatenate(wanted["mean"].tolist()), rtol=1e-3, atol=1e-3)


@pytest.mark.full
def test_late_rows_are_dropped_and_incidents_come_out(spark, tmp_path):
    tables = streams.rows(4, 60, outliers=0)
    failing = tables[45].eval("router == 'r1' and src == 'b'")
    tables[45].loc[failing, "bytes"] += 1000
    late = tables[3].copy()
    late["bytes"] = 1e6
    folder = _files([*tables[:50], late, *tables[50:]], tmp_path)
    schema = "router string, src string, dst string, bytes double, at timestamp"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 10).parquet(str(folder))
    told = ut.spark.apply(
        rows, modes=streams.MODES, model=streams.model("cp"), shards=2, late="1 minute", output="incidents",
        false_alarms="1/1000", **streams.NAMES,
    )  # fmt: skip
    query = told.writeStream.format("memory").queryName("told").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    found = spark.table("told").toPandas()
    opened = found[found.change == "opened"]
    assert {"r1"} <= set(opened.router)
    assert len(opened) < 4
    (here,) = opened[opened.router == "r1"].itertuples()
    assert here.at == streams.START + 45 * streams.STEP
    assert here.where.startswith("3 entries: b ")
    assert here.probability > 0.99


@pytest.mark.full
def test_a_silent_stream_is_forgotten_and_starts_anew(spark, tmp_path):
    tables = streams.rows(3, 24)
    tables = [one if not 6 <= number < 16 else one[one.router != "r2"] for number, one in enumerate(tables)]
    schema = "router string, src string, dst string, bytes double, at timestamp"
    files = str(_files(tables, tmp_path))
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(files)
    learned = ut.spark.apply(
        rows, modes=streams.MODES, model=streams.model("cp"), shards=2, late="1 minute", output="slices",
        ttl="30 minutes", **streams.NAMES,
    )  # fmt: skip
    query = learned.writeStream.format("memory").queryName("learned").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    wanted = streams.undisturbed(tables, "cp", shards=2, ttl=1800 * 10**6)
    _same(spark.table("learned").toPandas(), wanted)


@pytest.mark.full
@pytest.mark.parametrize("output", ["slices", "values"])
def test_labels_come_and_go(spark, tmp_path, output):
    """Each stream has its own places for them; one that is silent for longer than the time to live leaves its own."""
    tables, modes = streams.rows(4, 16), {"src": 4, "dst": streams.MODES["dst"]}
    for number, one in enumerate(tables):
        if number > 5:  # a router is replaced, in every stream but one
            one.loc[(one.src == "d") & (one.router != "r3"), "src"] = "new"
    schema = "router string, src string, dst string, bytes double, at timestamp"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(_files(tables, tmp_path)))
    learned = ut.spark.apply(
        rows, modes=modes, model=streams.model("cp"), shards=2, output=output, ttl="20 minutes", **streams.NAMES
    )
    query = learned.writeStream.format("memory").queryName(output).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    found, wanted = spark.table(output).toPandas(), streams.undisturbed(tables, "cp", modes, 2, ttl=1200 * 10**6)
    if output == "slices":
        _same(found, wanted)
        last = found.sort_values("at").groupby("router").src.last()
        assert "new" in last["r0"]
        assert "d" not in last["r0"]
        assert "new" not in last["r3"]
    else:
        late = found[found["at"] > streams.START + 12 * streams.STEP]
        assert set(late.src) == {"a", "b", "c", "d", "new"}
        assert set(late[late.router == "r1"].src) == {"a", "b", "c", "new"}
        assert len(late.groupby(["router", "at", "src", "dst"])) == len(late)


@pytest.mark.full
def test_a_new_version_converts_the_state_and_an_old_one_refuses_it(tmp_path):
    _need_spark()
    tables = streams.rows(6, 6)
    _files(tables[:3], tmp_path)
    assert _started(tmp_path, "cp", "local[1]").wait(timeout=600) == 0
    _files(tables, tmp_path, first=3)
    newer = tmp_path / "newer"  # as if the next version had been installed everywhere
    newer.mkdir()
    now = STATE_VERSION
    (newer / "sitecustomize.py").write_text(
        "from undertow.cluster import versions\n"
        f"versions.STATE_VERSION = {now + 1}\n"
        f"versions.CONVERTERS[{now}] = lambda content: content\n"
    )
    assert _started(tmp_path, "cp", "local[1]", newer).wait(timeout=600) == 0
    wanted = streams.undisturbed(tables, "cp", shards=4)
    _same(import_module("pandas").read_parquet(tmp_path / "result.parquet"), wanted)
    _files(streams.rows(6, 7), tmp_path, first=6)
    assert _started(tmp_path, "cp", "local[1]").wait(timeout=600) != 0
    assert f"this Undertow reads up to {now}: upgrade undertow everywhere" in (tmp_path / "log").read_text()


@pytest.mark.full
@pytest.mark.parametrize("bad", [
    ({"key": "host"}, "no column 'host'"),
    ({"value": "src", "output": "all"}, "output must be"),
    ({"late": "1 minute", "time": "bytes"}, "must be a timestamp"),
    ({"ttl": "soon"}, "ttl must be a duration"),
    ({"shards": 0}, "shards must be"),
])  # fmt: skip
def test_bad_arguments_are_refused_in_a_sentence(spark, bad):
    rows = spark.createDataFrame(streams.rows(1, 1)[0])
    given, message = bad
    with pytest.raises(ValueError, match=message):
        ut.spark.apply(rows, **{**streams.NAMES, "modes": streams.MODES, "model": ut.Tracker(), **given})


@pytest.mark.full
@pytest.mark.parametrize(("kind", "count", "slices"), [("cp", 500, 8), ("tracker", 24, 6)])
def test_driver_and_executor_killed_in_mid_stream(tmp_path, kind, count, slices):
    """Row for row as one undisturbed process, to rounding: nothing is lost, and nothing comes twice."""
    _need_spark()
    tables = streams.rows(count, slices)
    _files(tables, tmp_path)
    job = _started(tmp_path, kind)
    try:
        _wait(job, tmp_path, 2)
        killed = [one for one in _children(job) if "CoarseGrainedExecutorBackend" in _command(one)]
        assert killed
        killed[0].kill()
        _wait(job, tmp_path, 4)
        assert not (tmp_path / "result.parquet").exists()
    finally:
        _kill(job)
    job = _started(tmp_path, kind)
    try:
        assert job.wait(timeout=1800) == 0  # some minutes where the machine is not shared
    finally:
        _kill(job)
    wanted = streams.as_a_worker(tables, kind, shards=4)
    _same(import_module("pandas").read_parquet(tmp_path / "result.parquet"), wanted)


def _need_spark():
    if required("spark"):
        assert HAVE_JAVA, "Spark needs Java 17, and there is no java: make system"
        import_module("pyspark")
        return
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'undertow[spark]'")
    if not HAVE_JAVA:
        pytest.skip("Spark needs Java 17, and there is no java")


def _same(found, wanted):
    """Row for row, to rounding."""
    found = found.sort_values(["router", "at"], ignore_index=True)
    wanted = wanted[wanted.ut_time < wanted.ut_time.max()].reset_index(drop=True)  # the last waits for the watermark
    assert found.router.tolist() == wanted.ut_stream.tolist()
    assert found["at"].astype("datetime64[us]").astype(np.int64).tolist() == wanted.ut_time.tolist()
    for name, away in (("mean", 1e-3), ("std", 5e-3), ("outlier_probability", 1e-3)):
        ours, theirs = (np.stack(one[name].tolist()).astype(float) for one in (found, wanted))
        np.testing.assert_allclose(ours, theirs, rtol=away, atol=1e-3, err_msg=name)


def _files(tables, folder, first=0):
    """One file per slice from the first on, in the order of their names and of their dates."""
    place = folder / "in"
    place.mkdir(exist_ok=True)
    for number, table in list(enumerate(tables))[first:]:
        path = place / f"{number:04}.parquet"
        table.assign(at=table["at"].astype("datetime64[us]").dt.tz_localize("UTC")).to_parquet(path, index=False)
        os.utime(path, (1.8e9 + number, 1.8e9 + number))
    return place


def _started(folder, kind, master="local-cluster[2,1,1024]", *paths):
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*paths, HERE.parents[1] / "src", HERE]))
    command = [sys.executable, str(HERE / "spark_job.py"), str(folder), master, kind]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def _children(job):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(job.pid).children(recursive=True)
    return []


def _command(process):
    """Nothing of one that has ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess):  # zombies are such
        return " ".join(process.cmdline())
    return ""


def _wait(job, folder, batches):
    """Until so many batches are complete."""
    end = time.monotonic() + 600
    while len(list((folder / "checkpoint" / "commits").glob("[0-9]*"))) < batches:
        assert job.poll() is None, (folder / "log").read_text()[-3000:]
        assert time.monotonic() < end, (folder / "log").read_text()[-3000:]
        time.sleep(0.2)


def _kill(job):
    """The driver first, with its Java; then what is left of its own."""
    processes = _children(job)
    with contextlib.suppress(ProcessLookupError):
        os.kill(job.pid, signal.SIGKILL)
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    job.wait()
