import pytest
from browsing import window
from service_of_tests import STREAM, service


@pytest.fixture
def client(tmp_path):
    with service(tmp_path) as client:
        client.put("/api/streams/a", json=STREAM)
        yield client


@pytest.fixture
def browser(tmp_path):
    found = window(tmp_path)
    yield found
    found.quit()
