import hashlib

import numpy as np
import pytest

from undertow.lab.recordings.files import DataFile, data_folder, locate, read_mat

CONTENT = b"a recording"
FILE = DataFile("heart.mat", hashlib.sha256(CONTENT).hexdigest(), "Somebody, 2001", "a hospital")


def test_the_argument_comes_before_the_variable_before_the_checkout(monkeypatch, tmp_path):
    inside = tmp_path / "project" / "deep"
    inside.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    monkeypatch.chdir(inside)
    monkeypatch.delenv("UNDERTOW_DATA", raising=False)
    assert data_folder() == tmp_path / "shared" / "data"
    monkeypatch.setenv("UNDERTOW_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    assert data_folder(tmp_path / "given") == tmp_path / "given"


def test_a_file_that_is_there_and_right_is_found(tmp_path):
    (tmp_path / FILE.name).write_bytes(CONTENT)
    assert locate(FILE, tmp_path) == tmp_path / FILE.name


def test_an_absent_file_is_one_sentence_that_says_where_it_is_expected(tmp_path):
    with pytest.raises(FileNotFoundError) as refused:
        locate(FILE, tmp_path)
    sentence = str(refused.value)
    assert str(tmp_path / FILE.name) in sentence
    assert "UNDERTOW_DATA" in sentence
    assert "a hospital" in sentence
    assert "\n" not in sentence


def test_a_file_with_other_content_is_refused(tmp_path):
    (tmp_path / FILE.name).write_bytes(CONTENT + b"!")
    with pytest.raises(ValueError, match="SHA-256"):
        locate(FILE, tmp_path)


def test_old_and_new_matlab_files_have_the_same_axes(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    h5py = pytest.importorskip("h5py")
    x = np.arange(6.0).reshape(2, 3)
    scipy_io.savemat(tmp_path / "old.mat", {"x": x})
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as new:
        new["x"] = x.T  # MATLAB writes its axes reversed
    with (tmp_path / "new.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + bytes([0, 2]) + b"IM")
    for name in ("old.mat", "new.mat"):
        np.testing.assert_array_equal(read_mat(tmp_path / name, "x")["x"], x)
        with pytest.raises(ValueError, match="no variable y"):
            read_mat(tmp_path / name, "x", "y")


def test_without_scipy_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "scipy.io", None)
    with pytest.raises(ImportError, match=r"pip install 'undertow\[bench\]'"):
        read_mat(tmp_path / "x.mat", "x")
