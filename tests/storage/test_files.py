"""Files are replaced completely or not at all."""

import csv
import gzip
import json
import os
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import forked
import pyarrow.parquet as pq
import pytest

from causal_shaping.errors import FileError
from causal_shaping.storage import (
    LOCK,
    check_outputs,
    check_target,
    claim_run_folder,
    replacing,
    replacing_together,
    write_table,
    write_text,
)


@contextmanager
def begun(code, *arguments):
    """Start a program and give what it prints first; afterwards it is killed."""
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.kill()


def test_contents_reach_the_disk_before_the_name_and_then_the_folder(tmp_path, monkeypatch):
    events, replace, fsync = [], os.replace, os.fsync

    def note_fsync(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def note_replace(source, target):
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
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


def write_both(one, two):
    write_text(one, "new", [".html"])
    write_text(two, "new", [".txt"])


def test_files_that_are_written_together_take_their_places_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "a.html", tmp_path / "b.html"
    with pytest.raises(FileError, match="must end in"), replacing_together():
        write_both(one, two)
    assert list(tmp_path.iterdir()) == []
    with replacing_together():
        write_text(one, "new", [".html"])
        assert not one.exists()
        with pytest.raises(ZeroDivisionError), replacing(two, [".html"]):
            raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == [one]


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


def check_refused(folder, steps, why):
    with pytest.raises(FileError, match=why), claim_run_folder(folder, {"steps": steps}, "*.parquet"):
        pass


@pytest.mark.parametrize("text", ['{"steps": 4}', "[" * 100_000, "null", "{"])
def test_settings_that_were_changed_are_refused(tmp_path, text):
    for _ in range(2):
        with claim_run_folder(tmp_path, {"steps": 3}, "*.parquet"):
            (tmp_path / "a.parquet").touch()
    path = tmp_path / "settings.json"
    path.write_text(path.read_text().replace('"steps": 3', '"steps": 4') if "steps" in text else text)
    check_refused(tmp_path, 4, r"settings\.json .*Give another folder")


def test_a_folder_of_runs_holds_one_kind_of_settings(tmp_path):
    folder = tmp_path / "runs"
    for steps in (10, 20):  # nothing is done yet
        with claim_run_folder(folder, {"steps": steps}, "*.parquet"):
            assert json.loads((folder / "settings.json").read_text())["steps"] == steps
    (folder / "seed-0.parquet").touch()
    with claim_run_folder(folder, {"steps": 20}, "*.parquet"):
        pass
    check_refused(folder, 10, "runs with another steps")
    assert {item.name for item in folder.iterdir()} == {LOCK, "seed-0.parquet", "settings.json"}


def test_one_process_works_in_a_folder_at_a_time_and_one_that_is_killed_stops_nobody(tmp_path):
    settings = {"steps": 10}
    code = (
        "import sys, time; from pathlib import Path; from causal_shaping.storage import claim_run_folder\n"
        f"with claim_run_folder(Path({str(tmp_path)!r}), {settings}, '*.parquet'):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with begun(code) as said:
        assert said == "held"
        check_refused(tmp_path, 10, "Another process works")
    with claim_run_folder(tmp_path, settings, "*.parquet"):
        assert (tmp_path / "settings.json").exists()


def race(folder, start, number, said):
    """Claim a folder as soon as all may, and put a file there."""
    start.wait()
    try:
        with claim_run_folder(folder, {"steps": number}, "seed-*"):
            (folder / f"seed-{number}").touch()
        said.put((number, "won"))
    except FileError as error:
        said.put((number, str(error)))


def test_twelve_processes_that_race_for_a_new_folder_leave_the_runs_of_one(tmp_path):
    folder, context = tmp_path / "runs", get_context("fork")
    start, said = context.Barrier(12), context.SimpleQueue()
    racing = [context.Process(target=race, args=(folder, start, number, said)) for number in range(12)]
    for process in racing:
        process.start()
    heard = dict(said.get() for _ in racing)
    for process in racing:
        process.join()
    said.close()
    won = [number for number, words in heard.items() if words == "won"]
    assert len(won) == 1
    assert [item.name for item in folder.glob("seed-*")] == [f"seed-{won[0]}"]
    assert json.loads((folder / "settings.json").read_text())["steps"] == won[0]
    for number, words in heard.items():
        assert number in won or "Another process works in" in words or "runs with another steps" in words


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "real.html", tmp_path / "a.html"
    link.symlink_to(real)
    for text in ("first", "second"):
        write_text(link, text, [".html"])
        assert link.is_symlink()
        assert real.read_text() == text
    (tmp_path / "round.html").symlink_to("round.html")
    with pytest.raises(FileError, match="a circle of links"):
        write_text(tmp_path / "round.html", "x", [".html"])


def test_what_is_no_ordinary_file_or_protected_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.csv")
    (tmp_path / "b.csv").symlink_to("/dev/null")
    for name in ("a.csv", "b.csv"):
        with pytest.raises(FileError, match="no ordinary file"):
            check_target(tmp_path / name, [".csv"])
    (tmp_path / "c.csv").touch(0o400)
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (Path(path).stat().st_mode & 0o200 == 0 and mode == os.W_OK)
    )
    with pytest.raises(FileError, match="write-protected"):
        check_target(tmp_path / "c.csv", [".csv"])


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    """The limit of a file's size stands for the end of the disk."""
    path = tmp_path / "a.parquet"
    write_table(path, {"n": [1]})
    before = path.read_bytes()
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True  # else half a module stays behind\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from causal_shaping.errors import FileError; from causal_shaping.storage import write_table\n"
        "for path in sys.argv[1:]:\n"
        "    try: write_table(path, {'n': list(range(100_000))})\n"
        "    except FileError as error: print(error)"
    )
    given = [str(path), str(tmp_path / "b.csv"), str(tmp_path / "c.csv.gz")]
    ran = forked.run(code, *given)
    assert [line.partition(" cannot be written: ")[0] for line in ran.stdout.splitlines()] == given
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_text_that_a_spreadsheet_would_compute_is_escaped_unless_it_is_to_be_exact(tmp_path):
    table = {"=h": ["=1+1", "@x", "-1", "+1.5e3", "-a", "\ttab", "plain", "it's", None], "n": [-1.0] * 9}
    for name in ("a.csv", "a.parquet"):
        write_table(tmp_path / name, table)
    with (tmp_path / "a.csv").open(newline="") as file:
        heads, *rows = csv.reader(file)
    assert heads == ["'=h", "n"]
    assert [row[0] for row in rows] == ["'=1+1", "'@x", "-1", "+1.5e3", "'-a", "'\ttab", "plain", "it's", ""]
    assert {float(row[1]) for row in rows} == {-1.0}
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == table
    write_table(tmp_path / "a.csv", table, exact=True)
    with (tmp_path / "a.csv").open(newline="") as file:
        heads, *rows = csv.reader(file)
    assert [heads[0], *(row[0] or None for row in rows)] == ["=h", *table["=h"]]


def test_a_number_that_is_missing_is_an_empty_cell(tmp_path):
    write_table(tmp_path / "a.csv", {"x": [1.5, float("nan"), None]})
    assert (tmp_path / "a.csv").read_text() == '"x"\n1.5\n\n\n'


@pytest.mark.parametrize("names", [(["a\0b.csv"], []), (["x.csv"], ["a\0b.csv"])])
def test_a_name_that_no_file_can_have_is_refused(names):
    outputs, inputs = ([Path(name) for name in some] for some in names)
    with pytest.raises(FileError, match=r"'a\\x00b.csv' cannot be the name of a file: embedded null byte"):
        check_outputs(outputs, inputs)


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one_complete(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0" * 9)
    code = (
        "from causal_shaping.storage import write_text; print('begun', flush=True)\n"
        f"for i in range(10**9): write_text({str(path)!r}, str(i % 10) * 9, ['.txt'])"
    )
    for _ in range(3):
        with begun(code) as said:
            assert said == "begun"
            before = path.read_text()
            while path.read_text() == before:
                time.sleep(0.01)
        text = path.read_text()
        assert text == text[0] * 9
    write_text(path, "after", [".txt"])
    assert path.read_text() == "after"


def test_a_lock_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    (tmp_path / LOCK).mkdir()
    check_refused(tmp_path, 1, r"lock cannot be written: .*Give another folder")
