"""The folder of kept programs: what is in it is the user's, whole, and not too much."""

import os
import stat
import threading
from pathlib import Path

import pytest

from undertow.programs import folder as module
from undertow.programs.folder import Folder

PROGRAM = os.urandom(2000)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "cache" / "programs")


def only_file(folder):
    (file,) = folder.path.iterdir()
    return file


def test_what_was_written_is_read(folder):
    assert folder.read("one") is None
    folder.write("one", PROGRAM)
    folder.write("two", PROGRAM[:9])
    assert folder.read("one") == PROGRAM
    assert folder.read("two") == PROGRAM[:9]
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.path.iterdir()} == {0o600}


@pytest.mark.parametrize("place", ["first byte", "middle", "last byte", "cut off", "empty"])
def test_a_damaged_file_is_not_read_and_is_replaced(folder, place):
    folder.write("one", PROGRAM)
    file = only_file(folder)
    content = bytearray(file.read_bytes())
    if place in ("cut off", "empty"):
        file.write_bytes(content[: len(content) // 2 if place == "cut off" else 0])
    else:
        content[{"first byte": 0, "middle": len(content) // 2, "last byte": -1}[place]] ^= 1
        file.write_bytes(content)
    assert folder.read("one") is None
    folder.write("one", PROGRAM)
    assert folder.read("one") == PROGRAM


def test_a_file_under_the_name_of_another_is_not_read(folder):
    folder.write("one", PROGRAM)
    one = only_file(folder)
    folder.write("two", PROGRAM[:9])
    (two,) = set(folder.path.iterdir()) - {one}
    os.replace(two, one)
    assert folder.read("one") is None


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701, 0o720])
def test_a_folder_that_others_may_enter_is_not_used(folder, mode):
    folder.write("one", PROGRAM)
    folder.path.chmod(mode)
    assert folder.read("one") is None
    folder.write("two", PROGRAM)
    assert len(list(folder.path.iterdir())) == 1
    folder.path.chmod(0o700)
    assert folder.read("one") == PROGRAM


def test_what_belongs_to_another_is_not_used(folder, monkeypatch):
    folder.write("one", PROGRAM)
    monkeypatch.setattr(module.os, "getuid", lambda: os.stat(folder.path).st_uid + 1)
    assert folder.read("one") is None
    folder.write("two", PROGRAM)
    assert len(list(folder.path.iterdir())) == 1


def test_links_are_not_followed(folder, tmp_path):
    folder.write("one", PROGRAM)
    file = only_file(folder)
    elsewhere = tmp_path / "elsewhere"
    os.replace(file, elsewhere)
    file.symlink_to(elsewhere)
    assert folder.read("one") is None
    os.unlink(file)
    os.replace(elsewhere, file)
    assert folder.read("one") == PROGRAM
    link = tmp_path / "link"
    link.symlink_to(folder.path)
    assert Folder(link).read("one") is None


def test_a_file_that_others_may_write_is_not_read(folder):
    folder.write("one", PROGRAM)
    only_file(folder).chmod(0o622)
    assert folder.read("one") is None


def test_a_pipe_in_place_of_a_file_does_not_hold_anybody_up(folder):
    folder.write("one", PROGRAM)
    file = only_file(folder)
    file.unlink()
    os.mkfifo(file, 0o600)
    assert folder.read("one") is None


def test_what_was_not_used_for_longest_goes(tmp_path):
    folder = Folder(tmp_path / "programs", largest=4 * len(PROGRAM))
    for number in range(3):
        folder.write(str(number), PROGRAM)
    for number, file in enumerate(sorted(folder.path.iterdir(), key=lambda file: file.stat().st_mtime_ns)):
        os.utime(file, (number, number))
    assert folder.read("0") == PROGRAM  # and so it was used last
    for number in range(3, 5):
        folder.write(str(number), PROGRAM)
    assert [folder.read(str(number)) is not None for number in range(5)] == [True, False, False, True, True]
    assert sum(file.stat().st_size for file in folder.path.iterdir()) <= folder.largest
    folder.write("larger than all", os.urandom(5 * len(PROGRAM)))
    assert folder.read("larger than all") is None
    assert folder.read("4") == PROGRAM


def test_half_written_files_are_removed_when_they_are_old(folder):
    folder.write("one", PROGRAM)
    young, old, foreign = (folder.path / name for name in ("young.part", "old.part", "notes.txt"))
    for file in (young, old, foreign):
        file.write_bytes(b"?")
    for file in (old, foreign):
        os.utime(file, (0, 0))
    folder.write("two", PROGRAM)
    assert young.exists()
    assert foreign.exists()
    assert not old.exists()


def test_a_disk_that_is_full_leaves_nothing_behind(folder, monkeypatch):
    folder.write("one", PROGRAM)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    folder.write("two", PROGRAM)
    assert folder.read("two") is None
    assert len(list(folder.path.iterdir())) == 1


def test_a_place_where_no_folder_can_be_is_no_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    folder = Folder(tmp_path / "file" / "programs")
    folder.write("one", PROGRAM)
    assert folder.read("one") is None


def test_many_at_once_find_the_whole_program_or_none(folder):
    found = set()

    def work(number):
        for _ in range(30):
            folder.write(f"{number % 2}", PROGRAM)
            found.add(folder.read("0"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found <= {None, PROGRAM}
    assert folder.read("0") == folder.read("1") == PROGRAM
    assert len(list(folder.path.iterdir())) == 2


def test_where_the_folder_is(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERTOW_CACHE", str(tmp_path / "mine"))
    assert Folder.of_user() == Folder(tmp_path / "mine")
    for word in ("off", "OFF", "0", ""):
        monkeypatch.setenv("UNDERTOW_CACHE", word)
        assert Folder.of_user() is None
    monkeypatch.delenv("UNDERTOW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Folder.of_user() == Folder(tmp_path / "undertow" / "programs")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Folder.of_user() == Folder(tmp_path / ".cache" / "undertow" / "programs")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert Folder.of_user() is None
