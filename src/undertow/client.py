"""A small client of the service, for programs that wait and for those that do not."""

from __future__ import annotations

import asyncio
import io
import random
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

_RETRIES = 32  # about half a minute: a service that was killed is back by then
_LONGEST = 1.0  # seconds between two tries; longer ones would go on when the service is back
_TIMEOUT = 600.0  # the first slice of a shape compiles, which takes minutes on a busy machine


class ClientError(Exception):
    """The service refused a request.

    Attributes:
        status: Of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Requests:
    """What both clients send, and what they make of the answer."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        self.headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def silent(self, broken: list[str]) -> ClientError:
        return ClientError(0, f"no answer from {self.url} ({broken[0]}): is undertow serve running?")

    @staticmethod
    def create(name: str, shape: Sequence[int], settings: Mapping[str, Any]) -> dict[str, Any]:
        content = {"shape": [int(size) for size in shape], **{k: v for k, v in settings.items() if v is not None}}
        return {"method": "PUT", "url": f"/api/streams/{name}", "json": content}

    @staticmethod
    def push(name: str, x: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        values = np.ma.filled(np.ma.asarray(x, dtype=np.float64), np.nan)
        given = {key: value for key, value in options.items() if value is not None and key != "labels"}
        if (labels := options.get("labels")) is not None:
            stack = values if values.ndim > len(labels) else values[None]
            rows = [None if one is None else list(map(str, one)) for one in labels]
            slices = [{"values": _with_null(one), "labels": rows} for one in stack]
            address = f"/api/streams/{name}/slices"
            return {"method": "POST", "url": address, "json": {"slices": slices}, "params": given}
        file = io.BytesIO()
        np.save(file, values, allow_pickle=False)
        return {
            "method": "POST",
            "url": f"/api/streams/{name}/slices",
            "content": file.getvalue(),
            "headers": {"content-type": "application/x-npy"},
            "params": given,
        }

    @staticmethod
    def feedback(name: str, incident: int, false_alarm: bool) -> dict[str, Any]:
        url = f"/api/streams/{name}/incidents/{incident}/feedback"
        return {"method": "POST", "url": url, "json": {"false_alarm": false_alarm}}

    @staticmethod
    def wait(answer: Any, attempt: int) -> float | None:
        """Seconds until the next try; None where there is nothing to try again. ``answer`` None: no connection."""
        if attempt >= _RETRIES or (answer is not None and answer.status_code not in (429, 503)):
            return None
        backoff = min(_LONGEST, 0.1 * 2**attempt) * random.uniform(0.5, 1)  # not all clients at the same moment
        return backoff if answer is None else float(answer.headers.get("retry-after", backoff))

    @staticmethod
    def read(answer: Any) -> Any:
        if answer.status_code >= 400:
            try:
                message = answer.json()["error"]
            except (ValueError, KeyError, TypeError):
                message = f"the service answered {answer.status_code}"
            raise ClientError(answer.status_code, message)
        if answer.headers.get("content-type", "").startswith("application/json"):
            return answer.json()
        return answer.content


def _with_null(values: Any) -> Any:
    """Nested lists with null where nothing was observed."""
    made = values.astype(object)
    made[np.isnan(values)] = None
    return made.tolist()


def _httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise ImportError("the client needs httpx: pip install 'undertow[client]'") from None
    return httpx


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
        self._requests = _Requests(url, token)
        self._http = _httpx().Client(
            base_url=self._requests.url, headers=self._requests.headers, timeout=_TIMEOUT, transport=transport
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
        return self._send(_Requests.create(name, shape, settings))  # type: ignore[no-any-return]

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
        request = _Requests.push(name, x, {"sequence": sequence, "time": when, **options})
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
        return self._send(_Requests.feedback(name, incident, false_alarm))["incidents"]  # type: ignore[no-any-return]

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
            with _broken_connection(safe) as broken:
                answer = None
                answer = self._http.request(**request)
            pause = _Requests.wait(answer, attempt)
            if pause is None:
                if answer is None:
                    raise self._requests.silent(broken)
                return _Requests.read(answer)
            clock.sleep(pause)
            attempt += 1


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
        self._requests = _Requests(url, token)
        self._http = _httpx().AsyncClient(
            base_url=self._requests.url, headers=self._requests.headers, timeout=_TIMEOUT, transport=transport
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
        return await self._send(_Requests.create(name, shape, settings))  # type: ignore[no-any-return]

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
        request = _Requests.push(name, x, {"sequence": sequence, "time": when, **options})
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
        answer = await self._send(_Requests.feedback(name, incident, false_alarm))
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
            with _broken_connection(safe) as broken:
                answer = None
                answer = await self._http.request(**request)
            pause = _Requests.wait(answer, attempt)
            if pause is None:
                if answer is None:
                    raise self._requests.silent(broken)
                return _Requests.read(answer)
            await asyncio.sleep(pause)
            attempt += 1


@contextmanager
def _broken_connection(safe: bool) -> Iterator[list[str]]:
    """Let pass that there was no answer, where it is safe to ask again."""
    import httpx

    broken: list[str] = []
    try:
        yield broken
    except httpx.ConnectError as error:  # nothing was sent
        broken.append(str(error) or type(error).__name__)
    except httpx.TransportError as error:
        if not safe:
            raise ClientError(
                0,
                f"the connection broke ({error or type(error).__name__}); it is not known whether the "
                "slice was accepted: give it a sequence number to be able to send it again",
            ) from error
        broken.append(str(error) or type(error).__name__)
