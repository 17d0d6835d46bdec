"""A stream and a model that cost nothing, for tests of what happens around them; no jax is loaded for these."""

import errno
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import undertow
from undertow.runs import RunError, run
from undertow.serialization import container as checkpoint
from undertow.sources.base import Item
from undertow.sources.capacity import LabelSlots


@dataclass(frozen=True)
class Named:
    """As `undertow.tracker.events.Named`, without jax."""

    slice_off: bool = False
    rows: tuple = ()
    changed: tuple = ()
    dead: tuple = ()


class StubStream:
    """Slices drawn from a seed: the same ones however often and from wherever they are read."""

    name = "stub"
    time_name = "time"
    labels = (("a", "b", "c"), None)
    dims = ("site", "column")
    notices = ()

    def __init__(self, length=20, shape=(3, 4), pause=0.0, times=None, fail_at=None, error=None):
        self.length, self.shape, self.pause, self.times = length, shape, pause, times
        self.fail_at, self.error = fail_at, error
        self.fingerprint = f"stub {shape}"
        if shape != (3, 4):
            self.dims = tuple(f"mode_{n}" for n in range(len(shape)))
            self.labels = (None,) * len(shape)

    def slices(self, position=None):
        for index in range(0 if position is None else position["next"], self.length):
            if index == self.fail_at:
                raise self.error
            if self.pause:
                time.sleep(self.pause)
            yield Item(slice_at(index, self.shape), self.times(index) if self.times else None, {"next": index + 1})

    def close(self):
        pass


class GrowingStream(StubStream):
    """One more label every three slices, from two on; each is observed in so many slices, if that is said."""

    name, fingerprint = "growing", "growing"

    def __init__(self, length=20, pause=0.0, most=64, stays=None):
        super().__init__(length, pause=pause, times=minute)
        self.shape, self.most, self.stays = (2, 4), most, stays
        self.labels = (LabelSlots(2, (), most), None)

    def slices(self, position=None):
        slots = self.labels[0]
        for index in range(self.length):  # a table is read from its beginning, too
            rows = min(2 + index // 3, self.most)
            for number in range(rows):
                slots.slot(f"r{number}")
            if self.pause:
                time.sleep(self.pause)
            if position is None or index >= position["next"]:
                values = np.full((slots.size(rows), 4), np.nan)
                values[:rows] = slice_at(index, (rows, 4))
                if self.stays is not None:
                    values[: max(0, (index - self.stays) // 3 + 1)] = np.nan
                yield Item(values, self.times(index), {"next": index + 1})


def slice_at(index, shape=(3, 4)):
    draw = np.random.default_rng(index)
    values = 10 + index + draw.normal(size=shape)
    values[draw.random(shape) < 0.2] = np.nan
    values[draw.random(shape) < 0.1] += 50
    return values


class StubModel:
    """Exponential mean of every entry: a state that depends on all slices before, like the real one."""

    def __init__(self, pause=0.0):
        self.mean, self.steps, self.pause = None, 0, pause

    def update(self, x):
        if self.pause:
            time.sleep(self.pause)
        seen = ~np.isnan(x)
        if self.mean is None:
            self.mean = np.full(x.shape, np.nanmean(x))
        difference = np.where(seen, x - self.mean, 0.0)
        self.mean = self.mean + 0.2 * np.clip(difference, -3, 3)
        self.steps += 1
        probability = np.where(seen, 1 - np.exp(-((difference / 10) ** 2)), 0.0)
        return SimpleNamespace(
            mean=self.mean.copy(),
            low_rank=self.mean.copy(),
            std=np.full(x.shape, 1.5),
            low_rank_std=np.full(x.shape, 0.5),
            outliers=difference * probability,
            outlier_probability=probability,
            rank=1 + self.steps % 3,
            noise_std=1.0 / self.steps,
            elbo=-float(self.steps),
            status=StubStatus(("RANK_FULL",) if self.steps % 7 == 0 else ()),
        )

    def extend(self, shape):
        """New rows begin as the others are on average."""
        before, self.mean = self.mean, np.full(shape, self.mean.mean())
        self.mean[tuple(map(slice, before.shape))] = before

    def forget(self, rows):
        for mode, some in enumerate(rows):
            np.moveaxis(self.mean, mode, 0)[some] = 0

    def to_bytes(self):
        return checkpoint.to_bytes({"steps": self.steps}, {"mean": self.mean})


class StubTracker(StubModel):
    """With what a tracker gives beyond other models."""

    predictors = ("level", "covariance", "cp")

    def update(self, x):
        result = super().update(x)
        second = self.steps % 2
        result.weights = dict(zip(self.predictors, (0.5, 0.5 - 0.25 * second, 0.25 * second), strict=True))
        off, rows = self.steps == 3, ((0, 1),) if 5 <= self.steps < 9 else ()
        dead = (np.array([2]), np.array([3])) if self.steps > 12 else ()
        result.events = Named(slice_off=off, rows=rows, dead=dead)
        return result

    @classmethod
    def load(cls, content):
        """What `to_bytes` gave."""
        model, stub = cls(), load_stub(content)
        model.mean, model.steps = stub.mean, stub.steps
        return model


@dataclass(frozen=True)
class StubStatus:
    codes: tuple


def load_stub(content):
    header, arrays = checkpoint.from_bytes(content, "of the stub")
    model = StubModel()
    model.mean, model.steps = arrays["mean"], header["steps"]
    return model


def everything_in(folder):
    """All files below a folder with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def python_environment():
    """Of a process that imports this module and the package that is tested."""
    paths = [str(Path(__file__).parent), str(Path(undertow.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


# Tests that were started with nohup, or in the background of a script, pass on that signals are ignored.
HEAR_SIGNALS = """
import signal
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
"""


def run_python(program, *arguments):
    """Run a program that may import this module in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=python_environment(), capture_output=True, text=True, check=False)


OPTIONS = {"checkpoint_every": 4, "keep": "mean,data", "alerts": "parquet"}


def minute(index):
    """A time for every slice."""
    return np.datetime64("2024-05-01T00:00") + index


def run_stub(folder, stream=None, model=None, **options):
    """Thirty slices through the stub into a store."""
    stream = stream or StubStream(30, times=minute)
    return run(stream, model or StubModel(), store=folder, load=load_stub, **{**OPTIONS, **options})


def store_stub(folder, stream=None, **options):
    """Twenty slices through the stub into a store with nothing set."""
    return run(stream or StubStream(20), StubModel(), store=folder, load=load_stub, **options)


def reported_store(folder, stream=None, **options):
    """Forty slices with everything that a report shows; returns the folder."""
    options = {"keep": "data,mean,std,outliers,outlier_probability", "threshold": 0.9, **options}
    store_stub(folder, stream or StubStream(40), **options)
    return folder


def differing_files(folder, expected):
    """Names of the files below a folder that are not those of `everything_in` another one.

    Of the checkpoints only the newest counts: when the one before it was written depends on the clock.
    """
    found, expected = _without_older_checkpoints(everything_in(folder)), _without_older_checkpoints(expected)
    return {name for name in {*found, *expected} if found.get(name) != expected.get(name)}


def _without_older_checkpoints(files):
    older = sorted(name for name in files if name.startswith(".undertow/checkpoint-"))[:-1]
    return {name: content for name, content in files.items() if name not in older}


def broken_run(folder, error=None, at=15):
    """A run whose source fails: it leaves two checkpoints, the newest after 15 slices and one after 12."""
    stream = StubStream(
        30, times=minute, fail_at=at, error=error or OSError(errno.EIO, "Input/output error", "disk.npy")
    )
    try:
        run_stub(folder, stream)
    except RunError as refusal:
        return str(refusal)
    raise AssertionError("the run should have failed")
