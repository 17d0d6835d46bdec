"""The same store in a real PostgreSQL server, started for the test."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import needs
from service_of_tests import STUBS, body
from starlette.testclient import TestClient
from test_durability import told_across_an_end
from test_kill import killed

from undertow.service.app import make_app
from undertow.service.settings import Limits, Settings

_NEWEST = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_BIN = _NEWEST[-1] if _NEWEST else None
pytestmark = [
    pytest.mark.full,
    needs("postgres", _BIN, "a PostgreSQL server"),
    needs("postgres", os.getuid() != 0 or shutil.which("runuser"), "runuser: initdb does not run as root"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("postgres")
    user = ["runuser", "-u", "nobody", "--"] if os.getuid() == 0 else []
    if user:
        for parent in (folder, *folder.parents):  # another user has to get there
            if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):
                parent.chmod(0o755)
        shutil.chown(folder, "nobody")
    data = folder / "data"

    def call(name, *arguments):
        subprocess.run([*user, str(_BIN / name), *arguments], check=True, capture_output=True, cwd=folder, timeout=120)

    call("initdb", "-D", str(data), "-U", "undertow", "-A", "trust")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    call("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://undertow@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def service(address):
    settings = Settings(address, limits=Limits(checkpoint_every=3))
    return TestClient(make_app(settings, STUBS), base_url="http://127.0.0.1:8765")


def test_streams_are_kept_in_postgres_and_go_on(address):
    with service(address) as client:
        assert client.put("/api/streams/a", json={"shape": [3, 4]}).status_code == 201
        first = client.post("/api/streams/a/slices", json={"slices": [body(n, sequence=n) for n in range(8)]}).json()
        assert first["next"] == 8
        again = client.post("/api/streams/a/slices", json=body(7, sequence=7)).json()["results"][0]
        assert again["duplicate"]
        assert client.get("/api/streams/a/series").json()["sequence"] == list(range(8))
        cell = client.get("/api/streams/a/cell?position=1,2").json()
        assert len(cell["mean"]) == 8
    with service(address) as client:
        assert client.get("/api/streams/a").json()["next"] == 8
        assert client.post("/api/streams/a/slices", json=body(8)).json()["results"][0]["sequence"] == 8
        assert client.delete("/api/streams/a").status_code == 204
        assert client.get("/api/streams").json()["streams"] == []


def test_killed_again_and_again_nothing_acknowledged_is_lost_and_nothing_learned_twice(address, tried):
    killed(address, 3)
    tried("service on PostgreSQL killed with kill -9", 4)


def test_what_is_still_to_be_told_is_in_the_database(address):
    told_across_an_end(address)


def test_a_database_is_for_one_service(address):
    from undertow.service.errors import ServiceError

    with service(address), pytest.raises(ServiceError, match="in use"), service(address):
        pass


def test_a_wrong_address_is_one_sentence(tmp_path):
    from undertow.service.errors import ServiceError

    with pytest.raises(ServiceError, match="cannot be reached"), service(f"postgresql:///x?host={tmp_path}"):
        pass
