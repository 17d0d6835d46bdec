"""What clients of the service send, and what they make of the answer."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

_RETRIES = 32  # about half a minute: a service that was killed is back by then
_LONGEST = 1.0  # seconds between two tries; longer ones would go on when the service is back
TIMEOUT = 600.0  # the first slice of a shape compiles, which takes minutes on a busy machine


class ClientError(Exception):
    """The service refused a request.

    Attributes:
        status: Of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Requests:
    """What both clients send, and what they make of the answer."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        self.headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def silent(self, broken: list[str]) -> ClientError:
        """Why nobody answered."""
        return ClientError(0, f"no answer from {self.url} ({broken[0]}): is undertow serve running?")

    @staticmethod
    def create(name: str, shape: Sequence[int], settings: Mapping[str, Any]) -> dict[str, Any]:
        """To make a stream."""
        content = {"shape": [int(size) for size in shape], **{k: v for k, v in settings.items() if v is not None}}
        return {"method": "PUT", "url": f"/api/streams/{name}", "json": content}

    @staticmethod
    def push(name: str, x: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """To send slices."""
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
        """To say whether an incident was one."""
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
        """What the service answered."""
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


def httpx_module() -> Any:
    """httpx, which is an extra."""
    try:
        import httpx
    except ModuleNotFoundError:
        raise ImportError("the client needs httpx: pip install 'undertow[client]'") from None
    return httpx


@contextmanager
def broken_connection(safe: bool) -> Iterator[list[str]]:
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
