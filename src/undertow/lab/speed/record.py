"""A record: every workload beside the plain product and the baselines, then growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from undertow.lab.baselines import METHODS
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.speed import device
from undertow.lab.speed.axes import Axis
from undertow.lab.speed.baselines import TimedBaseline, unsupported
from undertow.lab.speed.growth import grow
from undertow.lab.speed.history import Record
from undertow.lab.speed.reference import Product, plain_product
from undertow.lab.speed.slices import Slices
from undertow.lab.speed.timing import Timing, sweep_seconds, time_slices, warm_up
from undertow.lab.speed.workload import Workload


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        slices: timed of every workload.
        repetitions: of each, at most.
        limit: seconds for one method on one workload, after which nothing new is begun.
        quick: leave out baselines that take seconds a slice, and the largest size of every axis of growth.
    """

    slices: int = 8
    repetitions: int = 20
    limit: float = 10.0
    quick: bool = False


QUICK = Effort(slices=4, limit=2.0, quick=True)


def record(
    workloads: Sequence[Workload],
    axes: Sequence[Axis],
    reporter: Reporter,
    effort: Effort = Effort(),  # noqa: B008 - frozen
    folder: Folder = None,
) -> Record:
    """Time everything that can be timed; what cannot is said in one sentence and left out.

    Args:
        workloads: which.
        axes: of growth; none for no growth.
        reporter: shows progress.
        effort: how long to measure.
        folder: of the data files.

    Returns:
        Date, device, versions, and one entry per workload and axis, as JSON can hold it.
    """
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    points = sum(len(axis.sizes) - effort.quick for axis in axes)
    reporter.begin(sum(1 + len(workload.baselines) for workload in workloads) + points)
    timed, skipped = [], []
    for workload in workloads:
        try:
            slices = workload.source(workload, workload.window + effort.slices, folder)
        except (FileNotFoundError, ImportError) as error:
            skipped.append({"workload": workload.name, "reason": str(error)})
            reporter.say(f"{workload.name} is left out: {error}")
            for _ in range(1 + len(workload.baselines)):
                reporter.done()
            continue
        timed.append(_workload(effort, workload, slices, reporter))
        device.let_programs_go()
    return {
        "date": begun,
        "device": device.device(),
        "versions": device.versions(),
        "quick": effort.quick,
        "workloads": timed,
        "skipped": skipped,
        "growth": grow(list(axes), reporter, effort.quick),
    }


def _workload(effort: Effort, workload: Workload, slices: Slices, reporter: Reporter) -> dict[str, Any]:
    """Undertow, the plain product before and after it, and the baselines."""
    window = workload.window
    reporter.start(f"{workload.name}: Undertow", window)
    subject = workload.make(workload, slices)
    warm_up(subject, window, reporter.tick)
    before = plain_product(workload.shape, window, workload.max_rank)
    timing = time_slices(subject, slices, window, effort.slices, effort.repetitions, effort.limit)
    after = plain_product(workload.shape, window, workload.max_rank)
    product = max(before, after, key=lambda one: one.flops_per_second)  # the same minimum that steps get
    subject.warm(window)  # the first slot of every turn tries to add and to prune components
    sweep = sweep_seconds(subject, window + 1, min(effort.slices - 1, 3), effort.repetitions, effort.limit / 4)
    once = subject.flops(1)
    flops = None if once is None or timing.iterations is None else once * timing.iterations
    reporter.done()
    return {
        "name": workload.name,
        "shows": workload.shows,
        "kind": workload.kind,
        "shape": list(workload.shape),
        "window": window,
        "max_rank": workload.max_rank,
        "observed": workload.observed,
        "settings": dict(workload.settings),
        **asdict(timing),
        "sweep_seconds": sweep,
        "slices_per_second": subject.slices / timing.seconds,
        "flops": flops,
        "flops_per_second": None if flops is None else flops / timing.seconds,
        "plain_flops_per_second": product.flops_per_second,
        "times_plain": None if flops is None else timing.seconds / product.seconds(flops),
        "sweep_times_plain": None if once is None or sweep is None else sweep / product.seconds(once),
        "bytes": subject.memory(),
        "baselines": [
            _baseline(effort, workload, slices, name, timing, product, flops, reporter) for name in workload.baselines
        ],
    }


def _baseline(
    effort: Effort,
    workload: Workload,
    slices: Slices,
    name: str,
    undertow: Timing,
    product: Product,
    flops: float | None,
    reporter: Reporter,
) -> dict[str, Any]:
    """One baseline on the same slices; its time also in the plain products that one step of Undertow is made of."""
    baseline = METHODS[name]
    about: dict[str, Any] = {
        "name": name,
        "label": baseline.label + (" (window)" if baseline.fit else ""),
        "family": "naive" if baseline.naive else "baseline",
    }
    reason = unsupported(name, workload, effort.quick)
    if reason is None:
        reporter.start(f"{workload.name}: {about['label']}", workload.window)
        subject = TimedBaseline(baseline, workload, slices)
        warm_up(subject, workload.window, reporter.tick)
        timing = time_slices(subject, slices, workload.window, effort.slices, effort.repetitions, effort.limit / 2)
        about |= {
            **asdict(timing),
            "times_undertow": timing.seconds / undertow.seconds,
            "times_plain": None if flops is None else timing.seconds / product.seconds(flops),
        }
    reporter.done()
    return {**about, "reason": reason}
