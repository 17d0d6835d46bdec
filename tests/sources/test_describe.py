"""What a source holds."""

import numpy as np
import pytest
from stream_files import LENGTH, MAKERS, SHAPE, SOURCES, TARGETS, labelled, moments, numbers

from undertow.sources import open_stream
from undertow.sources.describe import describe


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_format_can_be_described(name, made):
    found = describe(made(name).path, **made(name).options)
    assert found["slices_read"] >= LENGTH
    assert found["missing"] == 0
    assert found["smallest"] < found["largest"]


def test_a_description_holds_what_is_there():
    data = labelled().where(labelled() < 100)
    found = describe(data, slices=2)
    assert (found["shape"], found["modes"], found["times"], found["slices"]) == (SHAPE, ("src", "dst"), "time", LENGTH)
    assert found["labels"] == {"src": tuple(SOURCES), "dst": tuple(TARGETS)}
    assert (found["first_time"], found["last_time"]) == (moments()[0], moments()[-1])
    assert found["step"] == np.timedelta64(5, "m")
    assert found["slices_read"] == 2
    assert found["missing"] == pytest.approx((numbers()[:2] >= 100).mean())
    assert found["largest"] == numbers()[:2][numbers()[:2] < 100].max()


def test_what_was_not_read_for_want_of_time_is_said():
    found = describe(numbers(), seconds=-1)
    assert found["unchecked"] == "reading stopped after -1 seconds: slices from 1 on are not checked"
    assert describe(numbers())["unchecked"] is None
    assert describe(numbers()[:1], seconds=-1)["unchecked"] is None


def test_an_open_stream_can_be_described_and_read_afterwards():
    stream = open_stream(numbers())
    assert describe(stream)["slices"] == LENGTH
    assert len(list(stream.slices())) == LENGTH
