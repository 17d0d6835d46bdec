from undertow.lab.baselines import METHODS
from undertow.lab.methods import ALL_METHODS
from undertow.lab.scoreboard.tuning import GRIDS, candidates


def test_grids_hold_the_published_settings_and_real_settings(case):
    assert set(GRIDS) <= set(METHODS)
    for name in GRIDS:
        tried = candidates(case, ALL_METHODS[name])
        assert tried[0] == ALL_METHODS[name].settings(case)
        for settings in tried:
            METHODS[name].configure(**settings)
    assert candidates(case, ALL_METHODS["undertow"]) == []
