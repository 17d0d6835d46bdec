"""The study of incidents without a tracker: streams, faults and how alarms are counted."""

import numpy as np
import pytest

from undertow.incidents import Incident
from undertow.lab.studies import incidents as study


@pytest.mark.parametrize("name", study.STREAMS)
def test_streams_are_clean_and_mostly_observed(name):
    values, size = study.STREAMS[name](40, 0, study.OBSERVED)
    assert values.shape == (40, *study.SHAPE)
    assert 0.8 < np.mean(~np.isnan(values)) < 0.97
    assert size > 0


def test_faults_are_where_they_are_said_to_be():
    values, size = study.gaussian(study.FIRST + 7 * study.APART, 0, 1.0)
    made, faults = study.planted(values, size)
    assert [one.name for one in faults] == ["spike", "router, row and column", "block", "slice", "dead sensor", "level"]
    for one in faults[:4]:
        differs = made[one.first : one.last + 1] != values[one.first : one.last + 1]
        assert (differs == one.entries).all()
    assert (made[: study.FIRST] == values[: study.FIRST]).all()


def test_alarms_are_counted_by_the_intervals_they_meet():
    faulty = np.zeros(1440, bool)
    faulty[[100, 101, 102, 500]] = True
    fired = np.zeros(1450, bool)
    fired[[10 + 50, 10 + 102, 10 + 103, 10 + 900]] = True
    spans = ((95, 111), (5, 7), (710, 712))
    told = tuple(Incident(number, "entry", first, last, until=last) for number, (first, last) in enumerate(spans))
    found = study.Followed(told, fired)
    numbers = study.judged(found, faulty, first=10)
    assert numbers["incidents"] == {"found": 1, "faults": 2, "alarms": 2, "false a day": 1.0}
    assert numbers["three sigma"] == {"found": 1, "faults": 2, "alarms": 3, "false a day": 2.0}


def test_tables_hold_what_was_counted():
    one = Incident(1, "entry", 300, 300, until=300, entries=((3, 4),), count=1)
    found = study.Followed((one,), np.zeros(576, bool))
    values, size = study.gaussian(study.FIRST + 7 * study.APART, 0, 1.0)
    _, faults = study.planted(values, size)
    records = [{"stream": name, **study._false(found)} for name in study.STREAMS]
    records += [{"stream": "normal noise", **study._met(one, found)} for one in faults]
    false, met = study._false_table(records), study._found_table(records)
    assert false.rows[0][2].startswith("0.50")
    assert met.rows[0] == ("spike", "1 of 1", "1.00", "1 of 1", "0")
    assert met.rows[1][1] == "0 of 1"
