"""What is no store is refused."""

import pytest
from stubs import store_stub

from undertow.runs.errors import StoreError
from undertow.runs.store.reader import is_store, open_store


def test_what_is_no_store_is_refused_in_one_sentence(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        assert not is_store(path)
        with pytest.raises(StoreError, match="undertow run wrote"):
            open_store(path)
    store_stub(tmp_path / "s")
    (tmp_path / "s" / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        open_store(tmp_path / "s")
