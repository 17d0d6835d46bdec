import asyncio
import inspect

import httpx
import numpy as np
import pytest

from undertow.client import AsyncClient, Client, ClientError


def answering(*answers, seen=None):
    """A transport that gives these answers in turn; an exception is raised."""
    left = list(answers)

    def handle(request):
        if seen is not None:
            seen.append(request)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer[0], json=answer[1], headers={"retry-after": "0"})

    return httpx.MockTransport(handle)


OK = (200, {"next": 1, "results": []})
BUSY = (429, {"error": "busy"})


def test_busy_services_are_asked_again():
    assert Client(transport=answering(BUSY, BUSY, OK)).push("a", np.zeros(3))["next"] == 1


def test_broken_connections_are_tried_again_only_with_a_sequence_number():
    broken = httpx.ReadError("broken")
    seen = []
    assert Client(transport=answering(broken, OK, seen=seen)).push("a", np.zeros(3), sequence=4)["next"] == 1
    assert [request.url.params["sequence"] for request in seen] == ["4", "4"]
    with pytest.raises(ClientError, match="sequence number"):
        Client(transport=answering(broken, OK)).push("a", np.zeros(3))


def test_who_waits_for_a_restart_is_back_soon_after_it(monkeypatch):
    pauses = []
    monkeypatch.setattr("undertow.client.blocking.clock.sleep", pauses.append)
    gone = [httpx.ConnectError("refused")] * 24
    assert Client(transport=answering(*gone, OK)).push("a", np.zeros(3), sequence=0)["next"] == 1
    assert sum(pauses) > 10  # a service that starts on a busy machine is waited for
    assert max(pauses) <= 1


def test_refusals_are_sentences():
    refused = (422, {"error": "slice 0: too small"})
    with pytest.raises(ClientError, match="too small") as error:
        Client(transport=answering(refused)).push("a", np.ma.masked_invalid([1.0, np.nan]))
    assert error.value.status == 422


def test_the_token_is_sent():
    seen = []
    Client(token="secret", transport=answering(OK, seen=seen)).push("a", np.zeros(3))
    assert seen[0].headers["authorization"] == "Bearer secret"


def test_the_asynchronous_client_does_the_same():
    async def main():
        async with AsyncClient(transport=answering(BUSY, httpx.ConnectError("no"), OK)) as client:
            return await client.push("a", np.zeros(3), sequence=0, asynchronous=True)

    assert asyncio.run(main())["next"] == 1


def test_the_asynchronous_client_asks_the_same():
    calls = {
        "streams": (),
        "stream": ("a",),
        "result": ("a", 3, "std"),
        "series": ("a",),
        "incidents": ("a",),
        "feedback": ("a", 1),
        "export": ("a",),
        "delete": ("a",),
        "create": ("a", (2, 3)),
    }
    answer = {"streams": [], "incidents": []}
    one, other = [], []
    with Client(transport=answering(*[(200, answer)] * len(calls), seen=one)) as client:
        given = [getattr(client, name)(*arguments) for name, arguments in calls.items()]

    async def main():
        transport = answering(*[(200, answer)] * len(calls), seen=other)
        async with AsyncClient(transport=transport) as client:
            return [await getattr(client, name)(*arguments) for name, arguments in calls.items()]

    assert asyncio.run(main()) == given
    assert [(x.method, x.url, x.content) for x in one] == [(x.method, x.url, x.content) for x in other]
    public = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert public - set(dir(AsyncClient)) == set()
