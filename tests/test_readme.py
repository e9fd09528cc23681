"""The README: short, true, and every command, block and figure in it is run or made again here."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import causal_shaping as cs
from studies.docs.tables import demo, demo_end, demo_lead, study_help

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"


def block(kind, containing):
    """Return the only block of a kind that contains a text."""
    (found,) = (text for language, text in BLOCKS if language == kind and containing in text)
    return found


def section(name, text=README):
    """Return what stands between the marks of a generated part."""
    return text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0].strip()


def assert_same_but_for_rounding(text, lines):
    """Compare words exactly, and numbers to 5%: another processor may round a run differently."""
    made = "\n".join(lines).strip()
    assert re.sub(NUMBER, "#", text) == re.sub(NUMBER, "#", made)
    numbers = [[float(found.replace(",", "")) for found in re.findall(NUMBER, one)] for one in (text, made)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.05)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A folder in which the demo was run."""
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run([sys.executable, "-m", "causal_shaping", "demo"], cwd=folder, check=True, capture_output=True)
    return folder


def test_it_is_short_and_its_commands_come_first():
    lines = README.splitlines()
    assert len(README.split()) <= 900
    assert len(lines) <= 120
    first = [next(i for i, line in enumerate(lines, 1) if line.startswith(one)) for one in ("make demo", "make test")]
    assert max(first) < 30
    before = "\n".join(lines[: min(first)])
    assert not re.findall(r"\]\(", before)


def test_all_blocks_are_known():
    assert [(kind, text.split()[0]) for kind, text in BLOCKS] == [
        ("sh", "make"),
        ("sh", "python"),
        ("text", "agent"),
        ("sh", ".venv/bin/causal-shaping"),
        ("python", "import"),
    ]


def test_the_two_commands_are_targets_and_ci_calls_them():
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    for line in block("sh", "make demo").splitlines():
        command = line.split("#")[0].strip()
        ran = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert {"make demo": "causal-shaping demo", "make test": "pytest"}[command] in ran.stdout
        assert command in ci


@pytest.mark.skipif(not os.environ.get("CI"), reason="installs from a package index; set CI=1 to run it")
def test_without_make_it_installs_and_runs_outside_of_the_checkout(tmp_path):
    for name in ("src", "docs", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    lines = [line for line in block("sh", "venv .venv").splitlines() if "[test]" not in line]  # the suite itself
    script = "\n".join(["set -e", *lines]).replace("python -m", f"{shlex.quote(sys.executable)} -m")
    ran = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Pictures: demo/index.html" in ran.stdout
    assert (tmp_path / "demo" / "index.html").exists()


def test_its_figures_are_those_of_the_demo():
    assert_same_but_for_rounding(section("lead"), demo_lead())
    assert_same_but_for_rounding(section("demo"), demo_end())
    index = (ROOT / "docs" / "index.md").read_text()
    assert section("lead", index) == section("lead")
    none, believing, ours = demo()[1]["agents"].values()
    assert "Believing the logs lowers regret" in README
    assert ours["regret"]["high"] < believing["regret"]["low"] < believing["regret"]["high"] < none["regret"]["low"]
    assert believing["falls into the lava"]["low"] > none["falls into the lava"]["high"]


def test_its_table_is_that_of_the_field_study():
    assert section("help") == "\n".join(study_help()).strip()
    assert "Shaping helped Q-learning in one column and harmed it in one." in README
    alone, shaped = (
        [float(found) for found in re.findall(NUMBER, row.split("|", 2)[2])] for row in study_help()[-3:-1]
    )
    changes = sorted(one - without for one, without in zip(shaped, alone, strict=True))
    assert changes[0] < -0.1
    assert abs(changes[1]) < 0.01
    assert changes[2] > 0.1


def test_no_other_figure_stands_in_it():
    rest = re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->|```.*?```|`[^`]*`|\]\([^)]*\)", "", README, flags=re.DOTALL)
    assert re.findall(r"\d[\d.,]*", rest) == ["3.11", "2025"]  # the version of Python, the year of the paper
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()


def test_the_command_for_csv_files_runs(shown):
    (line,) = block("sh", "inspect demo").splitlines()
    command = shlex.split(line.removeprefix(".venv/bin/causal-shaping "))
    ran = subprocess.run(
        [sys.executable, "-m", "causal_shaping", *command], cwd=shown, capture_output=True, text=True, check=True
    )
    assert "contradictions between sources" in ran.stdout
    assert ran.stderr == ""
    options = re.findall(r"`(--\S+ \S+)` \|$", README, flags=re.MULTILINE)
    assert len(options) == 7
    assert all(option in line for option in options)


def test_the_example_runs_and_prints_what_is_said(shown, monkeypatch):
    code = block("python", "ShapeReward")
    assert len(code.splitlines()) == 12
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=shown, capture_output=True, text=True, check=True
    )
    without, shaped = map(float, ran.stdout.split())
    said_without, said_shaped, said_best = map(float, re.findall(r"-?\d+\.\d+", section("agent")))
    world = cs.load_world("lavacross-easy")
    best = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    assert said_best == pytest.approx(best, abs=0.005)
    assert (without, shaped) == (pytest.approx(said_without, abs=0.25), pytest.approx(said_shaped, abs=0.05))
    assert shaped > without + 0.2


def test_the_snippets_of_the_tour_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tour.md").read_text(), flags=re.DOTALL)
    assert len(snippets) == 10
    for snippet in snippets:
        exec(compile(snippet, "tour.md", "exec"), names)
    out = capsys.readouterr().out
    assert "bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 97% against 19%" in out
    assert "confounding of at least 5.53" in out
    assert "These ceilings help" in out
    assert names["never_try"].any()
    assert "(1, 1):" in out
    assert (tmp_path / "easy.svg").exists()
