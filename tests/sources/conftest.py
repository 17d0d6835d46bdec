import pytest
from stream_files import MAKERS


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Makes each file once, and only those that a test asks for."""
    ready = {}

    def get(name):
        if name not in ready:
            ready[name] = MAKERS[name](tmp_path_factory.mktemp(name))
        return ready[name]

    return get
