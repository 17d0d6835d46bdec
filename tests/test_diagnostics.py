"""Every flag has advice, and a status says which are set."""

import pytest

from undertow.diagnostics import ADVICE, HARMLESS, Flags, Status


@pytest.mark.parametrize("flag", [flag for flag in Flags if flag])
def test_every_flag_has_advice(flag):
    status = Status(flag)
    assert status.codes == (flag.name,)
    assert str(status) == ADVICE[flag]
    assert ": " in str(status)  # what to do
    assert status.ok == bool(flag & HARMLESS)


def test_several_flags_and_none():
    assert (Status().ok, Status().codes, str(Status())) == (True, (), "ok")
    both = Status(Flags.RANK_FULL | Flags.SINGULAR)
    assert not both.ok
    assert both.advice == (ADVICE[Flags.RANK_FULL], ADVICE[Flags.SINGULAR])
    assert both == Status(Flags.SINGULAR | Flags.RANK_FULL)
