"""The picture of ``undertow demo``: one anomalous slice, one pair of routers over time, and the error over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from undertow.lab import metrics
from undertow.lab.synthetic.streams import SyntheticStream

if TYPE_CHECKING:
    from undertow.cli.demo import Estimates

Floats = NDArray[np.float64]
_BLUE, _RED, _GREY, _GREEN = "#1f5f8b", "#d1495b", "#8d99ae", "#3a7d44"


def draw(path: Path, stream: SyntheticStream, estimates: Estimates, baselines: dict[str, Floats]) -> None:
    """Write the picture as PNG; figures are made without pyplot, so no display and no global state is touched."""
    figure = Figure(figsize=(14, 11), layout="constrained")
    FigureCanvasAgg(figure)
    axes: dict[str, Any] = figure.subplot_mosaic(
        [["data", "mean", "outliers", "std"], ["pair"] * 4, ["errors"] * 4], height_ratios=[1.2, 1, 0.9]
    )
    _draw_slice(figure, [axes[name] for name in ("data", "mean", "outliers", "std")], stream, estimates)
    _draw_pair(axes["pair"], stream, estimates)
    _draw_errors(axes["errors"], stream, estimates, baselines)
    figure.savefig(path, dpi=110)


def _draw_slice(figure: Figure, panels: list[Any], stream: SyntheticStream, estimates: Estimates) -> None:
    t = _busiest_slice(stream)
    figure.suptitle(f"One traffic matrix (slice {t}): what arrived, and what Undertow makes of it")
    positive = estimates.mean[t][estimates.mean[t] > 0]
    low = float(np.quantile(positive, 0.02)) if positive.size else 1.0
    high = max(float(np.nanmax(stream.values[t], initial=low)), 2 * low)
    shared = LogNorm(low, high, clip=True)
    pictures: list[tuple[str, Floats, dict[str, Any]]] = [
        ("data, Mbit/s (white: missing)", stream.values[t], {"norm": shared, "cmap": "viridis"}),
        ("mean, gaps filled", estimates.mean[t], {"norm": shared, "cmap": "viridis"}),
        ("outlier probability (○ injected)", estimates.outlier_probability[t], {"vmin": 0, "vmax": 1, "cmap": "Reds"}),
        ("standard deviation, Mbit/s", estimates.std[t], {"cmap": "cividis"}),
    ]
    for axes, (title, values, style) in zip(panels, pictures, strict=True):
        image = axes.imshow(values, interpolation="nearest", **style)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("to router", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        figure.colorbar(image, ax=axes, location="bottom", shrink=0.85)
    panels[0].set_ylabel("from router", fontsize=9)
    rows, columns = np.nonzero(stream.outlier_mask[t] & stream.mask[t])
    panels[2].scatter(columns, rows, s=110, facecolors="none", edgecolors=_BLUE, linewidths=1.5)


def _draw_pair(axes: Any, stream: SyntheticStream, estimates: Estimates) -> None:
    i, j = _liveliest_pair(stream)
    times = np.arange(len(stream))
    mean, band = estimates.mean[:, i, j], 1.96 * estimates.std[:, i, j]
    seen, flagged = stream.mask[:, i, j], estimates.outlier_probability[:, i, j] > 0.5
    plain, alarm = seen & ~flagged, seen & flagged
    data, hidden = stream.complete[:, i, j], ~seen
    axes.fill_between(
        times, np.maximum(mean - band, 1e-9), mean + band, color=_BLUE, alpha=0.2, lw=0, label="±1.96 std"
    )
    axes.plot(times, stream.low_rank[:, i, j], color="black", lw=1, ls="--", label="truth")
    axes.plot(times, mean, color=_BLUE, lw=1.5, label="mean")
    axes.plot(times[plain], data[plain], ".", color=_GREEN, ms=4, label="observed")
    axes.plot(times[hidden], data[hidden], "o", mfc="none", color=_GREY, ms=4, mew=0.7, label="hidden from Undertow")
    axes.plot(times[alarm], data[alarm], "X", color=_RED, ms=7, label="flagged as outlier")
    axes.set_title(f"Traffic from router {i} to router {j} through the day", fontsize=11)
    axes.set_ylabel("Mbit/s")
    axes.set_xlim(0, len(stream) - 1)
    axes.set_yscale("log")  # failures are as visible as surges
    axes.set_ylim(0.5 * float(data.min()), 4 * float(data.max()))
    axes.legend(ncols=6, fontsize=8, loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_errors(axes: Any, stream: SyntheticStream, estimates: Estimates, baselines: dict[str, Floats]) -> None:
    curves = {"Undertow": estimates.mean, **baselines}
    for (name, estimate), colour in zip(curves.items(), (_BLUE, _GREY, _RED), strict=True):
        errors = [
            metrics.relative_error(x, y, where)
            for x, y, where in zip(estimate, stream.low_rank, stream.hidden, strict=True)
        ]
        axes.semilogy(errors, color=colour, lw=1.8 if name == "Undertow" else 1.1, label=name)
    axes.set_title("Relative error on the hidden entries of every slice", fontsize=11)
    axes.set_xlabel("slice")
    axes.set_xlim(0, len(stream) - 1)
    axes.grid(which="both", alpha=0.2)
    axes.legend(ncols=3, fontsize=8, loc="upper right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _busiest_slice(stream: SyntheticStream) -> int:
    """The slice with most anomalies, once a method has had time to learn."""
    counts = (stream.outlier_mask & stream.mask).sum(axis=(1, 2))
    start = len(stream) // 3
    return start + int(counts[start:].argmax())


def _liveliest_pair(stream: SyntheticStream) -> tuple[int, int]:
    """A pair with anomalies worth seeing: the number of separate events first, the size of its daily swing second."""
    visible = (stream.outlier_mask & stream.mask)[len(stream) // 10 :]
    events = (np.diff(visible.astype(int), axis=0, prepend=0) == 1).sum(axis=0)
    low, middle, high = np.quantile(stream.low_rank, [0.25, 0.5, 0.75], axis=0)
    score = np.minimum(events, 4) + np.tanh((high - low) / middle)  # quartiles: one short peak makes a dull curve
    i, j = np.unravel_index(int(score.argmax()), score.shape)
    return int(i), int(j)
