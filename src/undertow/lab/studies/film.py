"""How quickly a film goes through `undertow run`: read, learned, written, with its alerts.

A generated scene as an MP4 file, grey and in colour, through a whole run at its defaults. The first half of the frames,
in which programs are compiled, are not timed. Processor time of all threads means something on a machine with other
work, too; F of the masks says that what is quick is not worse.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow.export.video import encoded
from undertow.lab.studies.foreground import Scene, f_score, generated
from undertow.lab.studies.table import StudyTable
from undertow.runs import run
from undertow.runs.store.masks import filled
from undertow.runs.store.reader import open_store
from undertow.sources import open_stream

TINT = (1.0, 0.85, 0.7)
"""Red, green and blue of a grey wall under a warm lamp."""
SHIRT = (-60.0, 0.0, 60.0)
"""What those who walk add to it."""
RATE = 10


def film(shape: tuple[int, int], frames: int, colours: tuple[bool, ...] = (False, True)) -> StudyTable:
    """One row for a grey film and one for a coloured one.

    Args:
        shape: Of a frame; even numbers.
        frames: Of each.
        colours: Which of them.
    """
    headings = ("film", "frames/s", "processor s/frame", "alert rows", "F")
    table = StudyTable(f"undertow run, {frames} frames of {shape[0]}×{shape[1]}, the second half timed", headings)
    scene = generated(count=frames, shape=shape)
    for colour in colours:
        with tempfile.TemporaryDirectory() as folder:
            table.rows.append(_row(scene, colour, Path(folder)))
    return table


def _row(scene: Scene, colour: bool, folder: Path) -> tuple[str, ...]:
    path, store = folder / "film.mp4", folder / "film-undertow.zarr"
    encoded(painted(scene, colour), path, RATE)
    moments: list[tuple[float, float]] = []
    stream = open_stream(path, colour=colour)
    summary = run(stream, store=store, progress=lambda now: moments.append((time.perf_counter(), time.process_time())))
    stream.close()
    middle = len(moments) // 2
    clock, processor = np.subtract(moments[-1], moments[middle]) / (len(moments) - 1 - middle)
    found = f_score(masks(store, scene.known), scene.truth)
    kind = "colour" if colour else "grey"
    return kind, f"{1 / clock:.1f}", f"{processor:.3f}", f"{summary.alerts:,}", f"{found:.2f}"


def painted(scene: Scene, colour: bool) -> NDArray[np.uint8]:
    """The frames in red, green and blue; grey ones have them alike."""
    pictures = np.repeat(scene.frames[..., None], 3, axis=-1)
    if colour:
        pictures = pictures * np.array(TINT, np.float32)
        moving = np.zeros(scene.frames.shape, bool)
        moving[list(scene.known)] = scene.truth
        pictures[moving] += np.array(SHIRT, np.float32)
    return np.clip(np.round(pictures), 0, 255).astype(np.uint8)


def masks(store: Path, known: tuple[int, ...]) -> NDArray[np.bool_]:
    """Of these frames: what is flagged in any colour, gaps filled."""
    held = open_store(store)
    likely = (held.slice("outlier_probability", number) for number in known)
    return np.stack([filled((one.max(axis=-1) if one.ndim == 3 else one) > 0.5) for one in likely])
