"""What the loop costs over bare `update` calls, on 144×176 video, in one process: ``python -m benchmarks.loop``.

Bare calls and whole runs (reading a file, the store with its default arrays, alerts, checkpoints) take turns on the
same frames with fresh models, in turn first and second. Printed are the ratio of every round, their median, and the
ratio of the best times: on a machine with other work the median swings, the best times show what the loop itself adds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import undertow as ut


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


def bare(path: Path) -> float:
    """Seconds for the updates alone."""
    frames = np.load(path)
    model = ut.RobustCP()
    begun = time.perf_counter()
    for frame in frames:
        model.update(frame)
    return time.perf_counter() - begun


def looped(path: Path, store: Path) -> float:
    """Seconds for the same through `undertow.run`, from opening the file to the last checkpoint."""
    model = ut.RobustCP()
    begun = time.perf_counter()
    ut.run(ut.open_stream(path), model, store=store, overwrite=True)
    return time.perf_counter() - begun


def main() -> None:
    """Print every round, and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "video.npy", Path(folder) / "store"
        np.save(path, video(options.frames))
        looped(path, store)  # compile, and import what a first run imports
        times = []
        for number in range(options.rounds):
            if number % 2:
                through, alone = looped(path, store), bare(path)
            else:
                alone, through = bare(path), looped(path, store)
            times.append((alone, through))
            each = 1000 / options.frames
            print(
                f"round {number + 1}: bare {alone * each:.1f} ms/slice, loop {through * each:.1f} ms/slice, "
                f"loop / bare {through / alone:.3f}",
                flush=True,
            )
    ratio = np.median([through / alone for alone, through in times])
    best = np.min(times, axis=0)
    print(f"median of the ratios {ratio:.3f}, ratio of the best times {best[1] / best[0]:.3f}")


if __name__ == "__main__":
    main()
