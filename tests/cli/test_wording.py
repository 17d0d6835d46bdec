"""The command talks like a command."""

import pytest

from undertow.cli.wording import as_typed


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("give them with labels=…", "give them with --labels …"),
        ("for example step='5min' or step=1", "for example --step 5min or --step 1"),
        ("use --late keep (late='keep') or --on-bad skip (on_bad='skip')", "use --late keep or --on-bad skip"),
        ("go on with --resume (resume=True) or --store (store=…)", "go on with --resume or --store"),
        ("use late='skip' or late='keep'", "use --late skip or --late keep"),
        ("open it with colour=True", "open it with --colour"),
        ("time='my column'", '--time "my column"'),
        ("row_group_size=100000 and outlier_rate=0.01", "row_group_size=100000 and outlier_rate=0.01"),
        ("late must be one of keep, skip, got 'x'", "--late must be one of keep, skip, got 'x'"),
        ("checkpoint_every must be a number of slices", "--checkpoint-every must be a number of slices"),
        (
            "duplicates is for long tables, and a.csv is a wide one",
            "--duplicates is for long tables, and a.csv is a wide one",
        ),
        ("time must be a date", "time must be a date"),
        ("--set outlier_rate=0.01", "--set outlier_rate=0.01"),
        ("a.csv?time=3 is not there", "a.csv?time=3 is not there"),
    ],
)
def test_options_are_named_as_they_are_typed(said, typed):
    assert as_typed(said) == typed
