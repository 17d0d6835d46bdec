import json
from dataclasses import replace

import pytest

from undertow.lab.cases import DATASETS
from undertow.lab.methods import NAIVE
from undertow.lab.studies import accuracy, changes, faults, fidelity, recorded


@pytest.mark.slow
def test_accuracy_is_the_median_error_of_every_preset(store, reporter, monkeypatch):
    monkeypatch.setattr(accuracy, "ROWS", accuracy.ROWS[1:2])
    table, numbers = accuracy.accuracy([0, 1], store, reporter)
    (found,) = numbers.values()
    assert set(found) == {"default", *accuracy.UNDERTOW, *NAIVE}
    assert [one["error"] for one in found["tuned"]] == pytest.approx([0.01, 0.01], rel=1e-4)
    assert found["default"][0]["f1"] == 1
    (row,) = table.rows
    assert row[:4] == ("40×40 r5, 15 % observed", "0.0100", "1.000", "5.0")
    assert len(row) == len(table.headings)
    json.dumps(numbers, allow_nan=False)


def test_every_row_of_accuracy_and_fidelity_is_a_case():
    for row in (*accuracy.ROWS, *fidelity.ROWS):
        assert len(DATASETS[row.dataset].case(row.condition, slices=2, burn_in=1).data) == 2


@pytest.mark.slow
def test_recorded_streams_show_error_and_calibration(store, reporter, tiny, monkeypatch):
    monkeypatch.setitem(recorded.DATASETS, "abilene", replace(tiny, name="abilene", recorded=True))
    row = replace(recorded.ROWS[0], slices=25)
    naive_and_one = ("last_value", "moving_mean", "running_median", "covariance", "cafe")
    monkeypatch.setattr(recorded, "BASELINES", naive_and_one)
    table, numbers = recorded.recorded([row], [0], store, reporter)
    (found,) = numbers[row.name]
    assert found["undertow"] == pytest.approx(0.01, rel=1e-3)
    assert 0 <= found["within"] <= 1
    assert set(recorded.BASELINES) - {"cafe"} <= set(found)  # a package that may be missing
    for name in ("moving_mean", "running_median"):
        assert found[f"{name} in hindsight"] <= found[name]
        assert f"{found[name]:.4f} / {found[f'{name} in hindsight']:.4f}" in table.rows[0]
    assert "last_value in hindsight" not in found
    assert len(table.rows[0]) == len(table.headings)
    best = min(value for key, value in found.items() if key.split()[0] in recorded.BASELINES and "changes" not in key)
    assert table.rows[0][3].startswith(f"{best:.4f} ")
    json.dumps(numbers, allow_nan=False)

    table, numbers = recorded.recorded([row], [0], store, reporter, published=True)
    assert not any("hindsight" in key for key in numbers[row.name][0])
    assert " / " not in "".join(table.rows[0])


def test_rows_are_chosen_by_a_part_of_their_name():
    assert [row.dataset for row in recorded.chosen("Chicago")] == ["chicago"]
    assert len(recorded.chosen("")) == len(recorded.ROWS)
    with pytest.raises(ValueError, match="unknown row abilena: choose from Abilene"):
        recorded.chosen("abilena")


def test_changes_are_found_again(reporter):
    table = changes.changes([0], reporter)
    assert table.rows == [("0", "0", "True", "[3, 6, 2]")]


def test_spikes_are_counted(reporter):
    flagged, others, ratio = faults.first_spike(3, 10, 0, reporter)
    assert (flagged, others) == (1, 0)
    assert ratio == pytest.approx(1, rel=1e-4)


def test_faults_without_the_recording_are_one_table_and_a_sentence(reporter, tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "SPIKES", ((1, 10.0),))
    (table,) = faults.faults([0], reporter, tmp_path)
    assert table.rows == [("1", "10", "1.00", "0.0", "1.00")]
    assert "intel_lab_sensor.mat is expected at" in reporter.sentences[0]


def test_fidelity_counts_what_is_within_the_limit():
    ratios = [1.1, 0.7, None]
    records = [{"method": "olstec", "ratio": ratio} for ratio in ratios]
    assert fidelity.within([*records, {"method": "undertow_paper", "ratio": 9.0}]) == (1, 2)
