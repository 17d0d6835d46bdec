import asyncio
import base64

import pytest
from service_of_tests import LIVE, service
from starlette.websockets import WebSocketDisconnect

from undertow.service import security
from undertow.service.errors import ServiceError
from undertow.service.settings import Settings

TOKEN = "a-token-of-enough-characters"


def test_other_addresses_need_a_token():
    with pytest.raises(ServiceError, match="needs a token"):
        Settings(host="0.0.0.0")
    with pytest.raises(ServiceError, match="at least 16"):
        Settings(token="short")
    assert Settings(host="::1").host == "::1"


def test_a_token_is_asked_for(tmp_path):
    with service(tmp_path, token=TOKEN, host="0.0.0.0") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 200
        for path in ("/api/streams", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
            assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(LIVE):
            pass
        coded = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
        with client.websocket_connect(LIVE, subprotocols=["undertow", f"token.{coded}"]) as socket:
            assert socket.accepted_subprotocol == "undertow"


def test_names_that_are_made_to_point_here_are_refused(client):
    assert client.get("/api/streams", headers={"host": "evil.example:8765"}).status_code == 421
    assert 'undertow_refused_total{status="421"} 1.0' in client.get("/metrics").text


def test_pages_of_other_sites_are_refused(client):
    headers = {"origin": "http://evil.example"}
    assert client.put("/api/streams/b", json={"shape": [3]}, headers=headers).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(LIVE, headers=headers):
        pass
    assert (
        client.put("/api/streams/b", json={"shape": [3]}, headers={"origin": "http://127.0.0.1:8765"}).status_code
        == 201
    )


def test_every_answer_tells_browsers_to_be_careful(client):
    for path in ("/", "/page/main.js", "/api/streams", "/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_limits(tmp_path):
    with service(tmp_path, body_bytes=2000, streams=1, slices=3) as client:
        client.put("/api/streams/a", json={"shape": [3, 4]})
        assert client.put("/api/streams/b", json={"shape": [3]}).status_code == 409
        assert client.post("/api/streams/a/slices", content=b"x" * 3000).status_code == 413
        assert client.post("/api/streams/a/slices", content=iter([b"x" * 1500] * 2)).status_code == 413
        many = {"slices": [{"values": [[1] * 4] * 3} for _ in range(4)]}
        assert client.post("/api/streams/a/slices", json=many).status_code == 413


def test_every_body_is_limited_before_it_is_read(tmp_path):
    large = b" " * 3000
    with service(tmp_path, body_bytes=2000) as client:
        client.put("/api/streams/a", json={"shape": [3, 4]})
        for method, path in (
            ("PUT", "/api/streams/b"),
            ("POST", "/api/streams/a/incidents/1/feedback"),
            ("DELETE", "/api/streams/a"),
        ):
            for content in (large, iter([large[:1500]] * 2)):
                answer = client.request(method, path, content=content, headers={"content-type": "application/json"})
                assert answer.status_code == 413
                assert "a request may have 2000 bytes" in answer.json()["error"]
        assert [one["name"] for one in client.get("/api/streams").json()["streams"]] == ["a"]
        assert 'undertow_refused_total{status="413"} 6.0' in client.get("/metrics").text


def test_without_a_token_no_body_is_held_in_memory(tmp_path):
    """Also not at addresses that are open to everybody."""
    asked = []

    async def receive():
        asked.append(1)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def app(scope, receive, send):
        pass

    async def send(message):
        pass

    guard = security.Guard(app, Settings(str(tmp_path / "s.db"), host="0.0.0.0", token=TOKEN))
    for path in ("/", "/healthz", "/page/main.js", "/api/streams/a"):
        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"x")]}
        asyncio.run(guard(scope, receive, send))
    assert asked == []


def test_a_body_that_does_not_come_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(security, "PATIENCE", 0.05)
    sent = []

    async def nothing():
        await asyncio.sleep(3600)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8765"), (b"content-length", b"5")]
    scope = {"type": "http", "method": "PUT", "path": "/api/streams/a", "headers": headers}
    asyncio.run(security.Guard(None, Settings(str(tmp_path / "s.db")))(scope, nothing, send))
    assert sent[0]["status"] == 408


def test_the_page_names_no_other_site():
    from importlib.resources import files

    for file in files("undertow.service").joinpath("page").iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text.replace("}://${location.host}", ""), file.name
