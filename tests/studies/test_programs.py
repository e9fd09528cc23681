"""The studies as programs: they run, refuse what makes no sense before they start, and end with what they started."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from brief_report import shorten

import causal_shaping as cs
from studies import ROOT
from studies.calibration import __main__ as calibration, listed_tests
from studies.paper import __main__ as paper
from studies.paper.theory import __main__ as theory
from studies.speed import __main__ as speed
from studies.speed._table import Row, show


def test_the_papers_study_writes_results_and_a_report(tmp_path, monkeypatch, capsys):
    shorten(monkeypatch)
    monkeypatch.setattr("studies.pages.FORMATS", (".svg",))  # what the page shows, no copies
    only = ["--only", "world=lavacross-easy", "method=zero,joint", "coins=standing"]
    assert paper.main(["--quick", "--no-bcq", "--workers", "1", "-o", str(tmp_path), *only]) == 0
    out = capsys.readouterr().out
    assert "4 runs and 4 potentials" in out
    assert f"Report written to {tmp_path / 'index.html'}" in out
    assert pq.read_table(tmp_path / "results.parquet").num_rows == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "world=mars"], "There is no world 'mars'. There are windy-empty"),
        (["--only", "zero"], "write it as 'world=NAME', 'method=NAME', 'coins=RULE' or 'seed=NUMBER'."),
        (["--seeds", "0"], "seeds is 0"),
        (["--workers", "0"], "workers is 0"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused_before_it_starts(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        paper.main(["--quick", "--no-bcq", "-o", str(tmp_path / "report"), *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.json.*"))


def test_theory_prints_all_of_it_for_one_world_and_a_potential_of_ones_own(tmp_path, capsys):
    mine = tmp_path / "mine.parquet"
    cs.Potential.zero(cs.load_world("lavacross-easy")).save(mine)
    brief = ["--episodes", "50", "--seeds", "2"]
    assert theory.main(["lavacross-easy", *brief, "--potential", str(mine)]) == 0
    out = capsys.readouterr().out
    for text in ("conservatively optimistic", "154 of 154", "2,456 of 2,482", "vacuous", "never leaves it", "Q-UCB"):
        assert text in out
    assert "mine.parquet" in out


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("paper", "--only world="),
        ("paper.theory", "--potential phi.parquet"),
        ("paper.diagram", "diagram.png"),
        ("calibration", "make calibrate"),
        ("calibration.episodes", "hidden cause lasts"),
        ("speed", "--quick"),
    ],
)
def test_help_shows_what_to_type(program, word):
    ran = subprocess.run(
        [sys.executable, "-m", f"studies.{program}", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert word in ran.stdout


def test_the_smallest_part_of_a_check_is_printed_and_not_kept(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(calibration, "FIGURES", tmp_path)
    monkeypatch.setattr(listed_tests, "SOURCE_REPETITIONS", 20)
    assert calibration.main(["--quick", "sources"]) == 0
    assert "limits of unseen mass: {'logs': 20" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_quick_benchmark_prints_its_rows(capsys):
    speed.main(["--quick", "--only", "startup"])
    assert "import causal_shaping" in capsys.readouterr().out


def test_a_benchmark_is_a_row_beside_its_yardstick_and_is_kept(tmp_path, capsys):
    kept = tmp_path / "bench.json"
    show([Row("work", 3.0, yardstick="the query", theirs=1.5, most=1.0)], kept)
    show([Row("other", 2.0)], kept, some=True)
    out = capsys.readouterr().out
    assert "3 CPU s" in out
    assert "1.5 the query" in out
    assert "<= 1 !" in out
    assert [row["work"] for row in json.loads(kept.read_text())] == ["work", "other"]


def workers_of(process):
    """Return the processes that a process started, and those that they did."""
    listed = subprocess.run(["/bin/ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict(map(int, line.split()) for line in listed.splitlines())
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes as Linux shows them")
def test_workers_end_with_a_program_that_is_killed(tmp_path):
    only = ("--only", "world=lavacross-easy", "method=zero", "--workers", "2", "-o", str(tmp_path / "report"))
    process = subprocess.Popen([sys.executable, "-m", "studies.paper", "--quick", "--seeds", "20", *only], cwd=ROOT)
    while process.poll() is None and not any((tmp_path / "report").glob("parts/[!.]*.json")):
        time.sleep(0.05)
    workers = workers_of(process.pid)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    assert len(workers) >= 2
    end = time.monotonic() + 20
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [worker for worker in workers if alive(worker)]
