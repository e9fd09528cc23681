"""Files are replaced completely or not at all."""

import gzip
import os
import stat

import pyarrow.parquet as pq
import pytest

from causal_shaping.errors import FileError
from causal_shaping.io.files import claim_run_folder, replacing, write_table, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path, [".txt"]) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_write_replaces_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path, [".txt"]) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_of_the_disk_names_the_file(tmp_path):
    def fail():
        with replacing(tmp_path / "a.txt", [".txt"]):
            raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"a.txt cannot be written: No space left on device"):
        fail()


def test_contents_reach_the_disk_before_the_name_and_then_the_folder(tmp_path, monkeypatch):
    events, replace, fsync = [], os.replace, os.fsync

    def note_fsync(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def note_replace(self, target):
        events.append("rename")
        replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr("pathlib.Path.replace", note_replace)
    write_text(tmp_path / "a.html", "<p>", [".html"])
    assert events == ["file", "rename", "folder"]


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    write_text(path, "old", [".html"])

    def crash(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new", [".html"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.html"
    write_text(path, "old", [".html"])
    path.chmod(0o640)
    write_text(path, "new", [".html"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "a.html"
    write_text(path, "old", [".html"])
    path.chmod(0o600)
    with replacing(path, [".html"]) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert path.read_text() == "new"


def test_a_table_is_written_for_other_programs(tmp_path):
    table = {"state": ["a", "b"], "n": [1, 2]}
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        write_table(tmp_path / name, table)
    text = '"state","n"\n"a",1\n"b",2\n'
    assert (tmp_path / "a.csv").read_text() == text
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode() == text
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == table
    with pytest.raises(FileError, match="must end in"):
        write_table(tmp_path / "a.xlsx", table)


@pytest.mark.parametrize("text", ['{"steps": 4}', "[" * 100_000, "null", "{"])
def test_settings_that_were_changed_are_refused(tmp_path, text):
    claim_run_folder(tmp_path, {"steps": 3}, "*.parquet")
    (tmp_path / "a.parquet").touch()
    claim_run_folder(tmp_path, {"steps": 3}, "*.parquet")
    path = tmp_path / "settings.json"
    path.write_text(path.read_text().replace('"steps": 3', '"steps": 4') if "steps" in text else text)
    with pytest.raises(FileError, match=r"settings\.json .*Give another folder"):
        claim_run_folder(tmp_path, {"steps": 4}, "*.parquet")


def test_a_folder_of_runs_holds_one_kind_of_settings(tmp_path):
    folder = tmp_path / "runs"
    claim_run_folder(folder, {"steps": 10}, "*.parquet")
    claim_run_folder(folder, {"steps": 20}, "*.parquet")  # nothing is done yet
    (folder / "seed-0.parquet").touch()
    claim_run_folder(folder, {"steps": 20}, "*.parquet")
    with pytest.raises(FileError, match="runs with another steps"):
        claim_run_folder(folder, {"steps": 10}, "*.parquet")
