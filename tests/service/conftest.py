import pytest
from service_of_tests import STREAM, service


@pytest.fixture
def client(tmp_path):
    with service(tmp_path) as client:
        client.put("/api/streams/a", json=STREAM)
        yield client
