"""A service with a model that costs nothing, asked in this process."""

import io

import numpy as np
from starlette.testclient import TestClient
from stubs import StubTracker, slice_at

from undertow.service.app import make_app
from undertow.service.hosted import Models
from undertow.service.settings import Limits, Settings

STUBS = Models(StubTracker, StubTracker.load)
LIVE = "ws://127.0.0.1:8765/api/live"
STREAM = {"shape": [3, 4], "dims": ["site", "hour"], "labels": [["x", "y", "z"], None]}
NPY = {"content-type": "application/x-npy"}


def service(folder, models=STUBS, *, token=None, host="127.0.0.1", deliver=(), **limits):
    """A client of a service whose store lies in a folder."""
    settings = Settings(str(folder / "streams.db"), host, token=token, limits=Limits(**limits), deliver=deliver)
    return TestClient(make_app(settings, models), base_url="http://127.0.0.1:8765")


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def as_lists(values):
    return [[None if np.isnan(x) else x for x in row] for row in values.tolist()]


def body(index, **more):
    return {"values": as_lists(slice_at(index)), "time": 1_700_000_000 + 60 * index, **more}
