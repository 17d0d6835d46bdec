"""The client of the service for programs that wait."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import Any, Self

from undertow.client.requests import TIMEOUT, Requests, broken_connection, httpx_module


class Client:
    """Talks to `undertow serve`.

    Slices that carry a ``sequence`` are sent again when the connection breaks or the service is busy: it learns none of
    them twice. Others are sent again only where the service refused them.

    Args:
        url: Of the service.
        token: Where it needs one.
        transport: Of httpx, for tests.

    Examples:
        >>> client = Client("http://127.0.0.1:8765")  # doctest: +SKIP
        >>> client.create("traffic", (12, 12), dims=["origin", "destination"])  # doctest: +SKIP
        >>> client.push("traffic", x, sequence=0)["results"][0]["alerts"]  # doctest: +SKIP
    """

    def __init__(self, url: str = "http://127.0.0.1:8765", token: str | None = None, *, transport: Any = None) -> None:
        self._requests = Requests(url, token)
        self._http = httpx_module().Client(
            base_url=self._requests.url, headers=self._requests.headers, timeout=TIMEOUT, transport=transport
        )

    def create(self, name: str, shape: Sequence[int], **settings: Any) -> dict[str, Any]:
        """Make a stream.

        Args:
            name: Letters, digits, ``.``, ``_`` and ``-``.
            shape: Of a slice.
            **settings: dims, labels, false_alarms, step.

        Returns:
            What is known of it, as in `streams`.
        """
        return self._send(Requests.create(name, shape, settings))  # type: ignore[no-any-return]

    def push(
        self, name: str, x: Any, *, sequence: int | None = None, time: Any = None, **options: Any
    ) -> dict[str, Any]:
        """Send a slice, or a stack of them.

        Args:
            name: Of the stream.
            x: Array with NaN where missing, or a masked array; with one more axis in front for several slices.
            sequence: Number of the (first) slice: makes it safe to send it again.
            time: Of the (first) slice, ISO 8601; now if left out.
            **options: ``fields="mean,std"``, ``alerts_only=True``, ``asynchronous=True``; ``labels`` of the rows that
                `x` has, for each mode (None: all of them), where not all are there or new ones have come.

        Returns:
            ``next``, and ``results`` with numbers, alerts, incidents and arrays of each slice.
        """
        if "asynchronous" in options:
            options["async"] = options.pop("asynchronous")
        when = None if time is None else str(time)
        request = Requests.push(name, x, {"sequence": sequence, "time": when, **options})
        return self._send(request, safe=sequence is not None)  # type: ignore[no-any-return]

    def streams(self) -> list[dict[str, Any]]:
        """All streams.

        Returns:
            Of each ``name``, ``shape``, ``dims``, ``labels``, the number of the ``next`` slice, and the ``newest`` one.
        """
        return self._get("/api/streams")["streams"]  # type: ignore[no-any-return]

    def stream(self, name: str) -> dict[str, Any]:
        """One stream.

        Args:
            name: Of the stream.

        Returns:
            What is known of it, as in `streams`.
        """
        return self._get(f"/api/streams/{name}")  # type: ignore[no-any-return]

    def result(self, name: str, sequence: int, fields: str = "mean") -> dict[str, Any]:
        """What was found in a slice of the past.

        Args:
            name: Of the stream.
            sequence: Number of the slice.
            fields: Arrays that are wanted, with commas between them.

        Returns:
            Numbers, alerts and these arrays.
        """
        return self._get(f"/api/streams/{name}/slices/{sequence}", fields=fields)  # type: ignore[no-any-return]

    def series(self, name: str, **options: Any) -> dict[str, Any]:
        """Numbers of many slices, as for curves.

        Args:
            name: Of the stream.
            **options: ``first`` and ``last`` slice, and how many points at ``most``.

        Returns:
            Lists by name.
        """
        return self._get(f"/api/streams/{name}/series", **options)  # type: ignore[no-any-return]

    def incidents(self, name: str, **options: Any) -> list[dict[str, Any]]:
        """Incidents, newest first.

        Args:
            name: Of the stream.
            **options: ``open=True`` for those that last; how many at ``most``.

        Returns:
            Each as `undertow.Incident.to_json` has it.
        """
        return self._get(f"/api/streams/{name}/incidents", **options)["incidents"]  # type: ignore[no-any-return]

    def feedback(self, name: str, incident: int, false_alarm: bool = True) -> list[dict[str, Any]]:
        """Say that an incident was a false alarm, or after all was none.

        Args:
            name: Of the stream.
            incident: Its number.
            false_alarm: False takes it back.

        Returns:
            The incidents that changed.
        """
        return self._send(Requests.feedback(name, incident, false_alarm))["incidents"]  # type: ignore[no-any-return]

    def export(self, name: str) -> bytes:
        """The stream's model.

        Args:
            name: Of the stream.

        Returns:
            Bytes from which `undertow.from_bytes` goes on.
        """
        return self._get(f"/api/streams/{name}/export")  # type: ignore[no-any-return]

    def delete(self, name: str) -> None:
        """Delete a stream and everything that belongs to it.

        Args:
            name: Of the stream.
        """
        self._send({"method": "DELETE", "url": f"/api/streams/{name}"}, safe=False)

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _get(self, url: str, **params: Any) -> Any:
        return self._send({"method": "GET", "url": url, "params": params})

    def _send(self, request: Mapping[str, Any], *, safe: bool = True) -> Any:
        attempt = 0
        while True:
            with broken_connection(safe) as broken:
                answer = None
                answer = self._http.request(**request)
            pause = Requests.wait(answer, attempt)
            if pause is None:
                if answer is None:
                    raise self._requests.silent(broken)
                return Requests.read(answer)
            clock.sleep(pause)
            attempt += 1
