"""The real streams; each test needs its file and says so where it is absent."""

import numpy as np
import pytest

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.recordings import (
    abilene,
    airport,
    chicago,
    hangzhou,
    intel_lab,
    lobby,
    pincat,
    radar,
    smd,
    sunnybrook,
)
from undertow.lab.recordings.files import data_folder


def loaded(module, **options):
    path = data_folder() / module.FILE.name
    if not path.is_file():
        pytest.skip(f"needs {path}")
    return module.load(**options)


@pytest.mark.parametrize(
    ("module", "slices", "shape"),
    [
        (abilene, 2016, (11, 11)),
        (airport, 100, (144, 176)),
        (lobby, 356, (128, 160)),
        (pincat, 50, (128, 128)),
        (sunnybrook, 20, (150, 150, 5)),
        (intel_lab, 2994, (52, 4)),
        (hangzhou, 2700, (80,)),
        (radar, 6419, (17, 5)),
        (chicago, 2905, (77, 77)),
        (smd, 23700, (38,)),
    ],
)
def test_shapes_and_citations(module, slices, shape):
    recording = loaded(module)
    assert len(recording) == slices
    assert recording.shape == shape
    assert recording.values.dtype == np.float64
    assert "20" in recording.citation  # a year


def test_abilene_names_match_its_entries():
    recording = loaded(abilene)
    pairs = np.array(recording.labels["pair"]).reshape(11, 11)
    origins = {name.split("-")[0] for name in pairs[:, 0]}
    destinations = {name.split("-")[1] for name in pairs[0]}
    assert len(origins) == 1 or len(destinations) == 1  # rows and columns of one matrix, not a scramble
    assert np.isfinite(recording.values).all()


def test_lobby_has_its_truth():
    recording = loaded(lobby)
    assert recording.foreground.shape == (14, 128, 160)
    assert recording.foreground_frames.max() < len(recording)
    fractions = recording.foreground.mean(axis=(1, 2))
    assert ((fractions > 0) & (fractions < 0.5)).all()


def test_what_was_never_measured_is_not_scored():
    recording = loaded(radar)
    assert 0.6 < np.isnan(recording.values).mean() < 0.7
    data = DATASETS["radar"].case(Condition(0.7), slices=50, burn_in=10).data
    hidden = data.hidden.sum() / data.known.sum()
    assert 0.27 < hidden < 0.33
    assert data.decided_by == "hidden_error"


def test_smd_has_labelled_faults():
    recording = loaded(smd)
    assert recording.train.shape == (4000, 38)
    assert recording.faulty.shape == (23700,)
    assert 0.1 < recording.faulty.mean() < 0.15


def test_an_absent_recording_is_one_sentence(tmp_path):
    for module in (abilene, chicago, hangzhou, radar, smd):
        with pytest.raises(FileNotFoundError, match=f"{module.FILE.name} is expected at"):
            module.load(tmp_path)


def test_sunnybrook_beats_repeat():
    recording = loaded(sunnybrook, beats=2)
    assert len(recording) == 40
    np.testing.assert_array_equal(recording.values[:20], recording.values[20:])
    with pytest.raises(ValueError, match="beats must be at least 1"):
        sunnybrook.load(beats=0)


def test_intel_lab_hides_zeros_and_knows_its_faults():
    raw = loaded(intel_lab, standardise=False)
    assert not (raw.values == 0).any()
    assert 0.1 < np.isnan(raw.values).mean() < 0.3
    assert raw.values[raw.impossible].size > 100
    assert not raw.impossible[..., 2:].any()  # light and voltage have no impossible values
    scaled = loaded(intel_lab)
    np.testing.assert_allclose(np.nanmedian(scaled.values, axis=(0, 1)), 0, atol=1e-12)
    np.testing.assert_array_equal(scaled.impossible, raw.impossible)
