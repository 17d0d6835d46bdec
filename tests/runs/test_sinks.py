"""What is written beside the arrays."""

import numpy as np
from stubs import OPTIONS, StubModel, StubStream, load_stub

from undertow.runs import run
from undertow.runs.store.reader import open_store


def test_settings_that_depend_on_the_stream_are_in_the_store(tmp_path):
    class Sized(StubModel):
        def update(self, x):
            result = super().update(x)
            result.settings = {"window": np.int64(self.steps), "forgetting": np.float32(0.5), "shape": (3, 4)}
            return result

    run(StubStream(5), Sized(), store=tmp_path / "s", load=load_stub, **OPTIONS)
    assert open_store(tmp_path / "s").settings == {"window": 5, "forgetting": 0.5, "shape": [3, 4]}
