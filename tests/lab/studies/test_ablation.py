from undertow.lab.criteria.criterion import Asked, Criterion
from undertow.lab.studies.ablation import table
from undertow.lab.studies.entries import Entry


def test_errors_and_times_are_ratios_and_the_rest_stands_beside_what_it_was():
    asked = {"over level": Asked(), "F1": Asked()}
    criterion = Criterion("toy", "a toy", lambda trial: {}, asked, slices=10)
    given, without = Entry("cp", {"window": 5}), Entry("cp", {"window": 5, "TOO_WIDE": 0})

    def record(entry, seed, milliseconds, **numbers):
        settings = dict(entry.settings)
        return {
            "row": "toy",
            "seed": seed,
            "method": "cp",
            "settings": settings,
            "numbers": numbers,
            "milliseconds": milliseconds,
            "reason": "",
        }

    records = [
        record(given, 1, 2.0, **{"over level": 1.0, "F1": 0.9, "rank": 3.0}),
        record(given, 2, 2.0, **{"over level": 1.0, "F1": 0.9, "rank": 3.0}),
        record(without, 1, 1.0, **{"over level": 2.0, "F1": 0.5, "rank": 4.0}),
        record(without, 2, 1.0, **{"over level": 0.5, "F1": 0.7, "rank": 6.0}),
    ]
    made = table([criterion], [given, without], records)
    assert made.headings == ("replaced", "stream", "error ×", "F1", "rank", "coverage", "time ×")
    line = ("TOO_WIDE=0", "a toy", "1.00 (0.50 to 2.00)", "0.600 (0.900)", "5 (3)", "–", "0.50")
    assert made.rows == [line]


def test_a_trial_that_failed_is_left_out():
    criterion = Criterion("toy", "a toy", lambda trial: {}, {"error": Asked()}, slices=10)
    record = {"row": "toy", "seed": 1, "method": "cp", "settings": {}, "numbers": {}, "reason": "it failed"}
    made = table([criterion], [Entry("cp"), Entry("cp", {"TOO_WIDE": 0})], [record])
    assert made.rows == [("TOO_WIDE=0", "a toy", "–", "–", "–", "–", "–")]
