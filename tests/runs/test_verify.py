"""Damage to a store is found and called damage."""

import zipfile
from pathlib import Path

import pytest
from stubs import StubStream, broken_run, everything_in, minute, reported_store, run_stub

from undertow.export import export
from undertow.report import write_report
from undertow.runs import RunError, StoreError
from undertow.runs.store.incidents import IncidentFile
from undertow.runs.store.reader import open_store
from undertow.runs.verify import verify

RECORDED = Path(__file__).parent.parent / "recorded" / "store.zip"


def flip(path, at=-7):
    """Change one bit."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def chunks_in(folder):
    return sorted(name for name in everything_in(folder) if "/c." in name)


@pytest.mark.slow
def test_a_flipped_bit_in_any_chunk_is_found(tmp_path):
    run_stub(tmp_path / "s")
    assert verify(tmp_path / "s").damage == ()
    for name in chunks_in(tmp_path / "s"):
        for at in (-7, -1, 20):
            flip(tmp_path / "s" / name, at)
            (damage,) = verify(tmp_path / "s").damage
            assert damage.startswith(f"{name}: ")
            flip(tmp_path / "s" / name, at)
    assert verify(tmp_path / "s").damage == ()


@pytest.mark.slow
def test_a_flipped_bit_in_any_chunk_is_found_by_resuming(tmp_path):
    broken_run(tmp_path / "s")
    names = [name for name in chunks_in(tmp_path / "s") if not name.startswith("site/")]  # labels are written anew
    assert len(names) > 12
    for name in names:
        flip(tmp_path / "s" / name)
        with pytest.raises(RunError, match=r"is missing or damaged \(the checksum of c\..* differs\): restore it"):
            run_stub(tmp_path / "s", resume=True)
        flip(tmp_path / "s" / name)
    assert run_stub(tmp_path / "s", resume=True).slices == 30


def test_damaged_metadata_of_an_array_are_found(tmp_path):
    run_stub(tmp_path / "s")
    document = tmp_path / "s/evidence/zarr.json"
    whole = document.read_bytes()
    for word in (b"{", b"float64", b"NaN", b"crc32c", b"ELBO"):
        flip(document, whole.index(word))
        (damage,) = verify(tmp_path / "s").damage
        assert damage.startswith("evidence/zarr.json")
        document.write_bytes(whole)
    document.write_bytes(whole.replace(b" 30", b" 34"))  # a run was killed before it wrote the group's document
    assert verify(tmp_path / "s").damage == ()
    document.unlink()
    assert verify(tmp_path / "s").damage == ("evidence/zarr.json is missing",)


def test_a_missing_chunk_and_damaged_alerts_incidents_and_checkpoints_are_found(tmp_path):
    run_stub(tmp_path / "s")
    (tmp_path / "s/data/c.1.0.0").unlink()
    flip(tmp_path / "s/.undertow/checkpoint-000000000028")
    (tmp_path / "s/alerts/part-000000.parquet").write_bytes(b"PAR1")
    (tmp_path / "s/incidents.jsonl").write_text('{"iX": 1}\n{"id": 2, "ki')
    missing, alerts, incidents, checkpoint = verify(tmp_path / "s").damage
    assert "incidents.jsonl is damaged at line 1" in incidents
    assert missing == "data/c.1.0.0 is missing"
    assert "part-000000.parquet" in alerts
    assert "checkpoint-000000000028" in checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alerts.csv", "alerts.jsonl", "alerts/part-000001.parquet"])
def test_a_flipped_bit_in_alerts_that_still_parse_is_found_and_not_gone_on_with(tmp_path, name):
    options = {"alerts": name.rpartition(".")[2], "threshold": 0.9}
    folder = tmp_path / "s"
    run_stub(folder, StubStream(8), **options)
    path = folder / name
    whole = path.read_bytes()
    assert verify(folder).damage == ()
    flip(path, 50 if "parquet" in name else max(whole.rfind(digit) for digit in b"24680"))  # 4 becomes 5
    (damage,) = verify(folder).damage
    assert path.name in damage
    assert "restore" not in damage
    with pytest.raises(RunError, match=r"damaged.*: restore it from a copy"):
        run_stub(folder, StubStream(20), resume=True, **options)
    path.write_bytes(whole)
    assert run_stub(folder, StubStream(20), resume=True, **options).slices == 20
    assert verify(folder).damage == ()


def test_what_a_file_of_lines_was_is_compared_with_its_marks(tmp_path):
    path = tmp_path / "incidents.jsonl"
    file = IncidentFile(tmp_path)
    file.write(b"one\n")
    marks = file.marks()
    file.write(b"two\n")
    flip(path, -2)
    file.cut(marks)  # what comes after them does not matter
    assert (path.read_bytes(), file.marks()) == (b"one\n", marks)
    flip(path, 0)
    with pytest.raises(StoreError, match=r"incidents.jsonl is damaged or was edited \(its checksum differs\)"):
        file.cut(marks)
    file.cut({"incidents": 4})  # of an earlier version, which knew no checksums
    with pytest.raises(StoreError, match="is shorter than it was"):
        file.cut({"incidents": 5})
    file.close()


@pytest.mark.parametrize("name", ["mean/c.0.0.0", "rank/c.0", "time/c.0", "status/c.0", "site/c.0"])
def test_readers_call_damage_damage(tmp_path, name):
    folder = reported_store(tmp_path / "s")
    flip(folder / name)
    for read in (lambda: write_report(folder), lambda: export(folder, tmp_path / "x.nc")):
        with pytest.raises(
            StoreError, match=r"s is damaged \(.*checksum do not match\): restore it from a copy, or run"
        ):
            read()


def test_a_missing_chunk_is_not_read_as_nothing(tmp_path):
    folder = reported_store(tmp_path / "s")
    (folder / "fit_error/c.0").unlink()
    with pytest.raises(StoreError, match=r"is damaged \(fit_error/c.0 is missing\)"):
        open_store(folder)


def test_a_store_begun_without_checksums_goes_on_without(tmp_path):
    with zipfile.ZipFile(RECORDED) as archive:
        archive.extractall(tmp_path)
    found = verify(tmp_path / "store.zarr")
    assert (found.checksums, found.damage) == (False, ())
    (tmp_path / "store.zarr/data/c.1.0.0").write_bytes(b"nonsense")
    assert verify(tmp_path / "store.zarr").damage[0].startswith("data/c.1.0.0: ")


def test_both_last_checkpoints_are_kept_after_the_end(tmp_path):
    run_stub(tmp_path / "s", StubStream(30, times=minute))
    assert [path.name[-2:] for path in sorted((tmp_path / "s/.undertow").glob("checkpoint-*"))] == ["28", "30"]
    (tmp_path / "s/.undertow/checkpoint-000000000030").write_bytes(b"torn")
    assert run_stub(tmp_path / "s", StubStream(34, times=minute), resume=True).slices == 34
