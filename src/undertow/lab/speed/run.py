"""A run: every case beside the plain product and its rivals, then growth; one record comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from undertow.lab.accuracy.reporter import Reporter
from undertow.lab.baselines import METHODS
from undertow.lab.recordings.files import Folder
from undertow.lab.speed import device, rivals
from undertow.lab.speed.axes import Axis
from undertow.lab.speed.case import Case
from undertow.lab.speed.growth import grow
from undertow.lab.speed.history import Record
from undertow.lab.speed.reference import Product, plain_product
from undertow.lab.speed.stream import Stream
from undertow.lab.speed.timing import Timing, measure, sweep_seconds, warm_up


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    cases        which
    axes         of growth; none for no growth
    quick        fewer slices and repetitions, no rival that takes seconds a slice
    slices       timed of every case
    repetitions  of each, at most
    limit        seconds for one method on one case, after which nothing new is begun
    folder       of the data files
    """

    cases: Sequence[Case]
    axes: Sequence[Axis] = ()
    quick: bool = False
    slices: int = 8
    repetitions: int = 20
    limit: float = 10.0
    folder: Folder = None

    def steps(self) -> int:
        """How many methods and sizes there are to do."""
        points = sum(len(axis.sizes) - self.quick for axis in self.axes)
        return sum(1 + len(case.rivals) for case in self.cases) + points


def run(plan: Plan, reporter: Reporter) -> Record:
    """Do everything that can be done; what cannot is said in one sentence and left out."""
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    reporter.begin(plan.steps())
    cases, skipped = [], []
    for case in plan.cases:
        try:
            stream = case.source(case, case.window + plan.slices, plan.folder)
        except (FileNotFoundError, ImportError) as error:
            skipped.append({"case": case.name, "reason": str(error)})
            reporter.say(f"{case.name} is left out: {error}")
            for _ in range(1 + len(case.rivals)):
                reporter.done()
            continue
        cases.append(_case(plan, case, stream, reporter))
        device.let_programs_go()
    return {
        "date": begun,
        "device": device.device(),
        "versions": device.versions(),
        "quick": plan.quick,
        "cases": cases,
        "skipped": skipped,
        "growth": grow(list(plan.axes), reporter, plan.quick),
    }


def _case(plan: Plan, case: Case, stream: Stream, reporter: Reporter) -> dict[str, Any]:
    """Ours, the reference before and after it, and the rivals."""
    reporter.cell(f"{case.name}: Undertow", case.window)
    subject = case.make(case, stream)
    warm_up(subject, case.window, reporter.tick)
    before = plain_product(case.shape, case.window, case.max_rank)
    timing = measure(subject, stream, case.window, plan.slices, plan.repetitions, plan.limit)
    after = plain_product(case.shape, case.window, case.max_rank)
    product = max(before, after, key=lambda one: one.flops_per_second)  # the same minimum that steps get
    subject.warm(case.window)  # the first slot of every turn looks for components to be born or to die
    sweep = sweep_seconds(subject, case.window + 1, min(plan.slices - 1, 3), plan.repetitions, plan.limit / 4)
    once = subject.flops(1)
    flops = None if once is None or timing.iterations is None else once * timing.iterations
    reporter.done()
    return {
        "name": case.name,
        "shows": case.shows,
        "kind": case.kind,
        "shape": list(case.shape),
        "window": case.window,
        "max_rank": case.max_rank,
        "observed": case.observed,
        "settings": dict(case.settings),
        **asdict(timing),
        "sweep_seconds": sweep,
        "slices_per_second": subject.slices / timing.seconds,
        "flops": flops,
        "flops_per_second": None if flops is None else flops / timing.seconds,
        "plain_flops_per_second": product.flops_per_second,
        "times_plain": None if flops is None else timing.seconds / product.seconds(flops),
        "sweep_times_plain": None if once is None or sweep is None else sweep / product.seconds(once),
        "bytes": subject.memory(),
        "rivals": [_rival(plan, case, stream, name, timing, product, flops, reporter) for name in case.rivals],
    }


def _rival(
    plan: Plan,
    case: Case,
    stream: Stream,
    name: str,
    ours: Timing,
    product: Product,
    flops: float | None,
    reporter: Reporter,
) -> dict[str, Any]:
    """One rival on the same slices; its time also in the plain products that one step of ours is made of."""
    about: dict[str, Any] = {"name": name, "label": rivals.label(name), "family": rivals.family(name)}
    reason = rivals.refuses(name, case, plan.quick)
    if reason is None:
        reporter.cell(f"{case.name}: {about['label']}", case.window)
        subject = rivals.Rival(METHODS[name], case, stream)
        warm_up(subject, case.window, reporter.tick)
        timing = measure(subject, stream, case.window, plan.slices, plan.repetitions, plan.limit / 2)
        about |= {
            **asdict(timing),
            "times_ours": timing.seconds / ours.seconds,
            "times_plain": None if flops is None else timing.seconds / product.seconds(flops),
        }
    reporter.done()
    return {**about, "reason": reason}
