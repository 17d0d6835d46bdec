"""What a run costs over bare `update` calls, on 144×176 video, in one process.

Bare calls and whole runs (reading a file, the store with its default arrays, alerts, checkpoints) take turns on the
same frames with fresh models, in turn first and second. Wall time is what counts, but on a machine with other work it
swings by a quarter either way; processor time of all threads together does not, and bounds what the run can add.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import undertow as ut

Times = NDArray[np.float64]


def video(frames: int, rows: int = 144, columns: int = 176, seed: int = 0) -> NDArray[np.uint8]:
    """A room under a lamp that flickers a little, noise, and a bright block that moves through it; 8-bit grey."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[:rows, :columns]
    room = 90 + 40 * np.cos(x / 23) * np.sin(y / 31) + 30 * ((x // 22 + y // 18) % 2)
    picture = np.empty((frames, rows, columns), np.uint8)
    for t in range(frames):
        now = room * (1 + 0.03 * np.sin(t / 7)) + draw.normal(0, 2, room.shape)
        centre = (0.6 * rows, columns * (t % 60) / 60)
        now[(abs(y - centre[0]) < 22) & (abs(x - centre[1]) < 8)] = 230
        picture[t] = np.clip(now, 0, 255)
    return picture


def bare(path: Path, preset: str) -> Times:
    """The updates alone."""
    frames = np.load(path)
    model = ut.RobustCP(preset, window=20, max_rank=15)
    begun = now()
    for frame in frames:
        model.update(frame)
    return now() - begun


def whole_run(path: Path, store: Path, preset: str) -> Times:
    """The same through `undertow.run`, from opening the file to the last checkpoint."""
    model = ut.RobustCP(preset, window=20, max_rank=15)
    begun = now()
    ut.run(ut.open_stream(path), model, store=store, overwrite=True)
    return now() - begun


def now() -> Times:
    """Wall and processor seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def run_overhead(
    frames: int = 80, rounds: int = 5, preset: str = "default", say: Callable[[str], None] = print
) -> None:
    """Take turns, say every round, and the median at the end.

    Args:
        frames: of the video.
        rounds: how often both are timed.
        preset: of the models.
        say: shows a line.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "video.npy", Path(folder) / "store"
        np.save(path, video(frames))
        whole_run(path, store, preset)  # compile, and import what a first run imports
        times = []
        for number in range(rounds):
            if number % 2:
                through, alone = whole_run(path, store, preset), bare(path, preset)
            else:
                alone, through = bare(path, preset), whole_run(path, store, preset)
            times.append((alone, through))
            each = 1000 / frames
            wall, processor = through / alone
            say(
                f"round {number + 1}: bare {alone[0] * each:.1f} ms/slice, run {through[0] * each:.1f} ms/slice, "
                f"run / bare {wall:.3f} (processor time {processor:.3f})"
            )
    wall, processor = np.median([through / alone for alone, through in times], axis=0)
    say(f"run / bare, median: {wall:.3f} wall time, {processor:.3f} processor time")
