"""What cannot fit into memory is refused before anything is allocated."""

import tracemalloc

import numpy as np
import pytest

import undertow as ut
from undertow.engine import memory


def test_a_slice_larger_than_memory_is_refused_before_anything_is_allocated():
    huge = np.broadcast_to(1.0, (10**6, 10**6))
    with pytest.raises(ValueError, match=r"needs about .* GiB .* use a smaller window"):
        ut.RobustCP().update(huge)
    with pytest.raises(ValueError, match="needs about"):
        ut.init(ut.make_config(), (10**6, 10**6))


def test_sparse_slices_too_large_for_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000_000)
    with pytest.raises(ValueError, match="GiB are free"):
        ut.init(ut.make_config(noise="shared"), (100_000, 10_000), entries=1000)


@pytest.mark.parametrize("model", ["cp", "tracker"])
def test_fleets_too_large_for_memory_are_refused_before_anything_is_allocated(model):
    tracemalloc.start()
    with pytest.raises(ValueError, match="GiB are free"):
        ut.Fleet(10**9, (6, 5), model=model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**8


def test_a_sparse_state_takes_memory_for_its_entries_and_rows_only():
    config = ut.make_config(max_rank=2, window=3, noise="shared")
    narrow, wide = (memory.sparse_bytes(config, shape, 96) for shape in ((100, 100), (10_000, 10_000)))
    assert sum(wide) < 300 * sum(narrow)  # a slice has 10,000 times as many entries
    assert sum(wide) < sum(memory.dense_bytes(config, (10_000, 10_000))) / 100
