import pytest

from undertow.lab.cases import DATASETS, Condition, Size


def test_names_of_conditions():
    assert Condition(0.15, 0.02).name == "15 %, 2 % outliers"
    assert Condition(0.8, 0.1, 2.0).name == "80 %, 10 % outliers × 2"
    assert Condition(1.0).name == "100 %, clean"


def test_a_case_is_made_once_when_asked_for(tiny):
    case = tiny.case(tiny.conditions[0], seed=3, quick=True, slices=5)
    assert case.size == Size(5, 2)
    assert case.data is case.data
    assert len(case.data) == 5
    assert case.identity["seed"] == 3
    assert case.identity != tiny.case(tiny.conditions[0], seed=3).identity


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if not dataset.recorded])
def test_generated_data_follow_from_the_seed(name):
    dataset = DATASETS[name]
    condition = dataset.conditions[0] if dataset.conditions else Condition(0.5, 0.02, 10.0)
    one, same, other = (dataset.case(condition, seed, slices=31, burn_in=5).data for seed in (1, 1, 2))
    assert one.values.tobytes() == same.values.tobytes() != other.values.tobytes()
    assert one.values.shape == one.truth.shape
