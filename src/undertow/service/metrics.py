"""Numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from undertow.service.hosted import Outcome

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """Of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry, "namespace": "undertow"}
        self._slices = Counter("slices", "Slices learned.", ["stream"], **made)
        self._flagged = Counter("outliers", "Entries that were flagged.", ["stream"], **made)
        self._opened = Counter("incidents_opened", "Incidents that opened.", ["stream"], **made)
        self._step = Histogram("step_seconds", "Time to learn a slice.", buckets=_SECONDS, **made)
        self.push = Histogram("push_seconds", "Time from slices to their answer.", buckets=_SECONDS, **made)
        self.refused = Counter("refused", "Requests that were refused.", ["status"], **made)
        self._of_stream = {
            name: Gauge(name, text, ["stream"], **made)
            for name, text in (
                ("rank", "Components of the CP model."),
                ("noise_std", "Typical noise standard deviation."),
                ("outlier_rate", "Flagged fraction of the observed entries of the newest slice."),
                ("observed", "Observed fraction of the newest slice."),
                (
                    "calibration",
                    "Fraction of the newest observations within 1.96 std of what was predicted; 0.95 is right.",
                ),
                ("incidents", "Incidents that are open."),
            )
        }

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A number that is asked for when it is read."""
        Gauge(name, text, registry=self.registry, namespace="undertow").set_function(value)

    def slice_done(self, name: str, outcome: Outcome, seconds: float) -> None:
        """Count a slice."""
        self._step.observe(seconds)
        self._slices.labels(name).inc()
        self._flagged.labels(name).inc(outcome.numbers.get("alerts", 0))
        self._opened.labels(name).inc(sum(change.what == "opened" for change in outcome.changes))
        for number, gauge in self._of_stream.items():
            value = outcome.numbers.get(number)
            gauge.labels(name).set(float("nan") if value is None else value)

    def forget(self, name: str) -> None:
        """A stream was deleted."""
        for one in (self._slices, self._flagged, self._opened, *self._of_stream.values()):
            one.remove_by_labels({"stream": name})

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
