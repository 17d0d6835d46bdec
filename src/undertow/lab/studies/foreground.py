"""What moves before a background: masks of the tracker beside those of MOG2, as OpenCV has it by default.

Scenes: the Lobby recording with its hand-drawn truth, and generated ones in which the light wanders.
A mask is where the outlier probability is above one half, with gaps filled as in exported masks; nothing is tuned,
neither here nor there. MOG2 is shown as it is and with its gaps filled, too. The first frames, from which both learn
the background, are not scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.recordings import lobby
from undertow.lab.studies.table import StudyTable
from undertow.runs.default_model import default_model
from undertow.runs.store.masks import filled

Bools = NDArray[np.bool_]
WARM_UP = 20
"""Frames that are not scored."""


@dataclass(frozen=True)
class Scene:
    """A video and the truth of some of its frames: which, and where something moves (n, height, width)."""

    name: str
    frames: NDArray[np.float32]
    known: tuple[int, ...]
    truth: Bools


def generated(seed: int = 0, count: int = 80, shape: tuple[int, int] = (48, 64), drift: float = 0.3) -> Scene:
    """A textured background under a light that wanders; two people walk through.

    Args:
        seed: Of everything.
        count: Frames.
        shape: Of a frame.
        drift: Grey values by which the light changes from frame to frame, as a random walk.
    """
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[: shape[0], : shape[1]]
    wall = 110 + 30 * np.sin(row / 5) * np.cos(column / 7) + 10 * rng.normal(size=shape)
    light = np.exp(-((row - shape[0] / 3) ** 2 + (column - shape[1] / 2) ** 2) / 400)
    level = np.cumsum(rng.normal(size=(2, count)) * drift * [[1.0], [5.0]], axis=1)
    frames = wall + level[0][:, None, None] + level[1][:, None, None] * light + 2 * rng.normal(size=(count, *shape))
    truth = np.zeros(frames.shape, bool)
    for top, speed, start in ((shape[0] // 4, 1, WARM_UP), (shape[0] // 2, 2, WARM_UP + 20)):
        for time_ in range(start, count):
            left = (time_ - start) * speed
            truth[time_, top : top + 12, left : left + 5] = True
    frames[truth] += 45
    known = tuple(range(WARM_UP, count))
    frames = np.clip(np.round(frames), 0, 255).astype(np.float32)
    return Scene(f"generated, drift {drift:g}", frames, known, truth[list(known)])


def recorded(folder: Any = None) -> Scene:
    """The Lobby recording."""
    held = lobby.load(folder)
    scored = held.foreground_frames >= WARM_UP
    known = tuple(int(number) for number in held.foreground_frames[scored])
    return Scene("lobby", held.values.astype(np.float32), known, held.foreground[scored])


def tracker_masks(frames: NDArray[np.float32]) -> Iterator[Bools]:
    """Of `ut.Tracker`, as `undertow run` makes it for pictures."""
    tracker = default_model(pictures=True)
    for frame in frames:
        yield filled(np.asarray(tracker.update(frame).outlier_probability) > 0.5)


def mog2_masks(frames: NDArray[np.float32]) -> Iterator[Bools]:
    """Of OpenCV's MOG2 at its defaults; what it takes for shadow is no foreground."""
    try:
        cv2 = import_module("cv2")
    except ImportError:
        raise ImportError(
            "MOG2 needs opencv-python-headless, which is not installed: pip install 'undertow[compare]'"
        ) from None
    model = cv2.createBackgroundSubtractorMOG2()
    for frame in frames:
        yield np.asarray(model.apply(frame.astype(np.uint8))) == 255


def filled_mog2_masks(frames: NDArray[np.float32]) -> Iterator[Bools]:
    """The same, with gaps filled."""
    return map(filled, mog2_masks(frames))


METHODS: dict[str, Callable[[NDArray[np.float32]], Iterator[Bools]]] = {
    "tracker": tracker_masks,
    "MOG2": mog2_masks,
    "MOG2, gaps filled": filled_mog2_masks,
}


def f_score(found: Bools, truth: Bools) -> float:
    """Harmonic mean of precision and recall over all pixels."""
    both = int(np.count_nonzero(found & truth))
    return 2 * both / max(int(np.count_nonzero(found)) + int(np.count_nonzero(truth)), 1)


def foreground(
    scenes: list[Scene], methods: tuple[str, ...] = tuple(METHODS), say: Callable[[str], None] = print
) -> StudyTable:
    """F of every method on every scene, and frames a second, compilation included."""
    table = StudyTable("Foreground masks", ("scene", *(f"{name} {what}" for name in methods for what in ("F", "fps"))))
    for scene in scenes:
        cells = []
        for name in methods:
            begun = time.perf_counter()
            masks = [mask for number, mask in enumerate(METHODS[name](scene.frames)) if number in scene.known]
            spent = time.perf_counter() - begun
            cells += [f"{f_score(np.stack(masks), scene.truth):.2f}", f"{len(scene.frames) / spent:.1f}"]
            say(f"{scene.name}, {name}: F {cells[-2]}")
        table.rows.append((scene.name, *cells))
    return table
