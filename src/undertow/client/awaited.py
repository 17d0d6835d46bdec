"""The client of the service for programs that do other things meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self

from undertow.client.requests import TIMEOUT, Requests, broken_connection, httpx_module


class AsyncClient:
    """The same as `Client`, with methods to be awaited; `get` asks for anything else.

    Args:
        url: Of the service.
        token: Where it needs one.
        transport: Of httpx, for tests.

    Examples:
        >>> async def first_alerts(x):
        ...     async with AsyncClient("http://127.0.0.1:8765") as client:
        ...         await client.create("traffic", (12, 12), dims=["origin", "destination"])
        ...         answer = await client.push("traffic", x, sequence=0)
        ...         return answer["results"][0]["alerts"]
        >>> asyncio.run(first_alerts(x))  # doctest: +SKIP
    """

    def __init__(self, url: str = "http://127.0.0.1:8765", token: str | None = None, *, transport: Any = None) -> None:
        self._requests = Requests(url, token)
        self._http = httpx_module().AsyncClient(
            base_url=self._requests.url, headers=self._requests.headers, timeout=TIMEOUT, transport=transport
        )

    async def create(self, name: str, shape: Sequence[int], **settings: Any) -> dict[str, Any]:
        """Make a stream.

        Args:
            name: Letters, digits, ``.``, ``_`` and ``-``.
            shape: Of a slice.
            **settings: dims, labels, false_alarms, step.

        Returns:
            What is known of it, as in `streams`.
        """
        return await self._send(Requests.create(name, shape, settings))  # type: ignore[no-any-return]

    async def push(
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
        return await self._send(request, safe=sequence is not None)  # type: ignore[no-any-return]

    async def get(self, path: str, **params: Any) -> Any:
        """Any other question.

        Args:
            path: Such as ``/api/streams/NAME/series``.
            **params: Of the query.

        Returns:
            The answer, from JSON.
        """
        return await self._send({"method": "GET", "url": path, "params": params})

    async def streams(self) -> list[dict[str, Any]]:
        """All streams.

        Returns:
            Of each ``name``, ``shape``, ``dims``, ``labels``, the number of the ``next`` slice, and the ``newest`` one.
        """
        return (await self.get("/api/streams"))["streams"]  # type: ignore[no-any-return]

    async def stream(self, name: str) -> dict[str, Any]:
        """One stream.

        Args:
            name: Of the stream.

        Returns:
            What is known of it, as in `streams`.
        """
        return await self.get(f"/api/streams/{name}")  # type: ignore[no-any-return]

    async def result(self, name: str, sequence: int, fields: str = "mean") -> dict[str, Any]:
        """What was found in a slice of the past.

        Args:
            name: Of the stream.
            sequence: Number of the slice.
            fields: Arrays that are wanted, with commas between them.

        Returns:
            Numbers, alerts and these arrays.
        """
        return await self.get(f"/api/streams/{name}/slices/{sequence}", fields=fields)  # type: ignore[no-any-return]

    async def series(self, name: str, **options: Any) -> dict[str, Any]:
        """Numbers of many slices, as for curves.

        Args:
            name: Of the stream.
            **options: ``first`` and ``last`` slice, and how many points at ``most``.

        Returns:
            Lists by name.
        """
        return await self.get(f"/api/streams/{name}/series", **options)  # type: ignore[no-any-return]

    async def incidents(self, name: str, **options: Any) -> list[dict[str, Any]]:
        """Incidents, newest first.

        Args:
            name: Of the stream.
            **options: ``open=True`` for those that last; how many at ``most``.

        Returns:
            Each as `undertow.Incident.to_json` has it.
        """
        return (await self.get(f"/api/streams/{name}/incidents", **options))["incidents"]  # type: ignore[no-any-return]

    async def export(self, name: str) -> bytes:
        """The stream's model.

        Args:
            name: Of the stream.

        Returns:
            Bytes from which `undertow.from_bytes` goes on.
        """
        return await self.get(f"/api/streams/{name}/export")  # type: ignore[no-any-return]

    async def feedback(self, name: str, incident: int, false_alarm: bool = True) -> list[dict[str, Any]]:
        """Say that an incident was a false alarm, or after all was none.

        Args:
            name: Of the stream.
            incident: Its number.
            false_alarm: False takes it back.

        Returns:
            The incidents that changed.
        """
        answer = await self._send(Requests.feedback(name, incident, false_alarm))
        return answer["incidents"]  # type: ignore[no-any-return]

    async def delete(self, name: str) -> None:
        """Delete a stream and everything that belongs to it.

        Args:
            name: Of the stream.
        """
        await self._send({"method": "DELETE", "url": f"/api/streams/{name}"}, safe=False)

    async def close(self) -> None:
        """Release the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _send(self, request: Mapping[str, Any], *, safe: bool = True) -> Any:
        attempt = 0
        while True:
            with broken_connection(safe) as broken:
                answer = None
                answer = await self._http.request(**request)
            pause = Requests.wait(answer, attempt)
            if pause is None:
                if answer is None:
                    raise self._requests.silent(broken)
                return Requests.read(answer)
            await asyncio.sleep(pause)
            attempt += 1
