"""What the loop costs over bare `update` calls, on 144×176 video, in one process: ``python -m benchmarks.loop``.

Bare calls and whole runs (reading a file, the store with its default arrays, alerts, checkpoints) take turns on the
same frames with fresh models, in turn first and second; the models choose nothing (`--preset fixed`), since the
quicker a step, the more the loop shows. Wall time is what counts, but on a machine with other work it
swings by a quarter either way; processor time of all threads together does not, and bounds what the loop can add.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import undertow as ut

Times = np.ndarray


def video(frames: int, rows: int = 144, columns: int = 176, seed: int = 0) -> np.ndarray:
    """A room under a lamp that flickers a little, noise, and someone who walks through it; 8-bit grey."""
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


def looped(path: Path, store: Path, preset: str) -> Times:
    """The same through `undertow.run`, from opening the file to the last checkpoint."""
    model = ut.RobustCP(preset, window=20, max_rank=15)
    begun = now()
    ut.run(ut.open_stream(path), model, store=store, overwrite=True)
    return now() - begun


def now() -> Times:
    """Wall and processor seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def main() -> None:
    """Print every round, and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--preset", default="fixed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "video.npy", Path(folder) / "store"
        np.save(path, video(options.frames))
        looped(path, store, options.preset)  # compile, and import what a first run imports
        times = []
        for number in range(options.rounds):
            if number % 2:
                through, alone = looped(path, store, options.preset), bare(path, options.preset)
            else:
                alone, through = bare(path, options.preset), looped(path, store, options.preset)
            times.append((alone, through))
            each = 1000 / options.frames
            wall, processor = through / alone
            print(
                f"round {number + 1}: bare {alone[0] * each:.1f} ms/slice, loop {through[0] * each:.1f} ms/slice, "
                f"loop / bare {wall:.3f} (processor time {processor:.3f})",
                flush=True,
            )
    wall, processor = np.median([through / alone for alone, through in times], axis=0)
    print(f"loop / bare, median: {wall:.3f} wall time, {processor:.3f} processor time")


if __name__ == "__main__":
    main()
