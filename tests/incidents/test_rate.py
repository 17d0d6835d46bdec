"""What may be asked for, and online control of the false-discovery rate."""

import numpy as np
import pytest

from undertow.incidents.rate import FalseAlarms, online_fdr, remembered


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1/day", "time", 1 / 86400),
        ("2 per week", "time", 2 / 604800),
        ("1/2 hours", "time", 1 / 7200),
        ("3/500", "slices", 0.006),
        ("1 per 200 slices", "slices", 0.005),
        (0.01, "slices", 0.01),
        ("fdr 10%", "fdr", 0.1),
        ("fdr=0.05", "fdr", 0.05),
        (None, "slices", 0.001),
    ],
)
def test_rates_are_read(text, kind, value):
    found = FalseAlarms.parse(text)
    assert found.kind == kind
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "often", "1/0", "0/day", "-1/day", "nan/day", "fdr 100%", 2, "1/year", "1//2"])
def test_nonsense_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match="'1/day'"):
        FalseAlarms.parse(text)


@pytest.mark.slow
def test_lord_keeps_the_false_discovery_rate_and_finds_what_is_there():
    """Among 3000 tests every fiftieth is real, with tiny p-values; the others are uniform."""
    shares, power = [], []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        found, false, true = [], 0, 0
        for t in range(3000):
            real = t % 50 == 25
            p = draw.random() * (1e-6 if real else 1)
            if p <= online_fdr(t, found, 0.2):
                found = remembered(found, t)
                true, false = true + real, false + (not real)
        shares.append(false / max(true + false, 1))
        power.append(true / 60)
    assert np.mean(shares) <= 0.2
    assert np.mean(power) > 0.9
