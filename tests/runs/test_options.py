"""Options are validated before anything is written."""

import pytest
from stubs import run_stub

from undertow.runs import RunError
from undertow.runs.options import parse_keep


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 0.0}, {"threshold": 2}, {"alerts": "xml"}, {"precision": "half"}, {"checkpoint_every": 0},
     {"checkpoint_seconds": 0}, {"limit": 0}],
    ids=str,
)  # fmt: skip
def test_invalid_options_are_refused_before_anything_is_written(tmp_path, wrong):
    with pytest.raises(RunError, match=f"^{next(iter(wrong))} must"):
        run_stub(tmp_path / "s", **wrong)
    assert not (tmp_path / "s").exists()


def test_keep_is_checked():
    assert parse_keep("data, low_rank") == ("low_rank", "data")
    with pytest.raises(RunError, match=r"keep must be among mean, low_rank, .* got 'lowrank'"):
        parse_keep("lowrank")
