"""The attacks find what they look for; a short run of them finds nothing."""

import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked
import pytest

ATTACK = Path(__file__).parents[1] / "attack"


@pytest.fixture(autouse=True)
def attack(monkeypatch):
    monkeypatch.syspath_prepend(str(ATTACK))


def test_random_command_lines_end_with_a_message():
    program = "import runpy; runpy.run_path('commands.py', run_name='__main__')"
    done = forked.run(program, "--number=12", "--seed=7", "--seconds=300", cwd=ATTACK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7: 12 command lines, 0 defects" in done.stdout


FILES = """
import dataclasses, sys
import files
if sys.argv.pop(1) == "planted":  # a map has no checksum: if it were ours, its changes would be defects
    files.KINDS["map"] = dataclasses.replace(files.KINDS["map"], ours=True)
if __name__ == "__main__":
    files.main()
"""


@pytest.mark.parametrize(("how", "code"), [("as it is", 0), ("planted", 1)])
def test_mutated_files_are_refused_and_one_that_is_accepted_is_a_defect(how, code):
    kinds = ["csv", "logs", "counts", "potential", "map", "settings"] if how == "as it is" else ["map"]
    command = [sys.executable, "-c", FILES, how, "--trials", "4", "--seed", "7", "--kinds", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, cwd=ATTACK)
    assert done.returncode == code, done.stdout + done.stderr
    tried = done.stdout.splitlines()[-1].split()
    assert tried[0] == "all"
    assert int(tried[1]) == (104 if how == "as it is" else 24)


def test_command_lines_are_those_of_the_seed_and_reach_every_command():
    import commands

    group = commands.main_group()
    lines = [[commands.line(rng, group) for _ in range(400)] for rng in (random.Random(1), random.Random(1))]
    assert lines[0] == lines[1]
    assert {parts[0] for parts in lines[0]} == set(group.commands)
    known = {name for command in group.commands.values() for item in command.params for name in item.opts}
    tried = {part.partition("=")[0] for parts in lines[0] for part in parts}
    assert len(known & tried) > 0.7 * len({name for name in known if name.startswith("--")})


def test_a_traceback_a_hang_and_a_message_are_distinguished(monkeypatch):
    import commands

    import causal_shaping.cli as cli

    def ends(main):
        monkeypatch.setattr(cli, "main", main)
        return commands.run(["inspect"])[0]

    def broken():
        raise KeyError("x")

    monkeypatch.setattr(commands, "SECONDS", 0.2)
    before = signal.signal(signal.SIGALRM, commands._ring)
    try:
        assert ends(broken) == "traceback"
        assert ends(lambda: time.sleep(5)) == "hang"
        assert ends(lambda: sys.exit(2)) == 2
        assert ends(lambda: sys.exit(0)) == 0
    finally:
        signal.signal(signal.SIGALRM, before)


PLAIN = {"code": 0, "text": "fine\n", "rows": [["state", "value"], ["plain", "1.5"]], "pages": []}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"code": "traceback"}, "traceback"),
        ({"text": "a\x1b[2J"}, "control characters"),
        ({"text": "a\nFORGED: yes\n"}, "a forged line"),
        ({"rows": [["state", "value"], ["plain", "1.6"]]}, "other numbers"),
        ({"rows": [["state", "value"], ["=1+1", "1.5"]]}, "a formula"),
        ({"pages": [1]}, "other tags"),
    ],
)
def test_what_a_name_may_not_do_is_a_defect(changed, message):
    import names

    assert names.defects_of(PLAIN, PLAIN) == []
    (defect,) = names.defects_of(PLAIN | changed, PLAIN)
    assert message in defect


def test_tags_are_counted_with_their_attributes():
    import names

    plain = names.Tags("<p class='a'>plain</p>").found
    assert names.Tags("<p class='a'>&lt;script&gt;</p>").found == plain
    assert names.Tags("<p class='a'><script></script></p>").found != plain
    assert names.Tags("<p class='a' onclick='x'>plain</p>").found != plain


@pytest.mark.parametrize("place", ["file", "map"])
@pytest.mark.parametrize("name", ["parent", "root", "script", "nul", "long"])
def test_the_attack_itself_writes_nothing_outside_of_its_folder(tmp_path, name, place, monkeypatch):
    import names

    monkeypatch.setattr(names, "run", lambda arguments: (0, ""))
    folder = tmp_path / "in" / "side"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match="no name of a file"):
        names.outcome(folder, names.NAMES[name], place)
    assert names.strays_of(tmp_path, folder) == []


def test_names_that_are_no_names_of_files_are_tried_everywhere_else(tmp_path):
    import names

    arguments = names.logs(tmp_path, names.NAMES["script"], "everywhere")
    assert arguments[0] == "<script>alert(1)</script>0=plain0.parquet"
    assert arguments[2] == "--state=<script>alert(1)</script>"


def test_what_is_outside_of_the_folder_is_a_stray(tmp_path):
    import names

    folder = tmp_path / "in" / "side"
    folder.mkdir(parents=True)
    for path in (folder / "a", tmp_path / "b", tmp_path / "in" / "c"):
        path.touch()
    assert names.strays_of(tmp_path, folder) == [str(tmp_path / "b"), str(tmp_path / "in" / "c")]


def test_mutants_are_of_the_folder_that_is_asked_for_and_change_one_line():
    import mutants

    every = mutants.every_mutant("shaping/")
    assert {mutant.file.split("/")[0] for mutant in every} == {"shaping"}
    original = ast.unparse(ast.parse((mutants.SOURCE / every[0].file).read_text())).splitlines()
    changed = every[0].made()[0].splitlines()
    assert sum(before != after for before, after in zip(original, changed, strict=True)) == 1


def test_a_mutant_that_survived_is_open_until_it_is_explained():
    import mutants

    assert mutants.verdict({"result": "noticed", "by": "a test"}) not in mutants.UNEXPLAINED
    assert mutants.verdict({"result": "survived", "tests": 3}) in mutants.UNEXPLAINED
    assert mutants.verdict({"result": "survived", "explanation": "last digits"}) not in mutants.UNEXPLAINED


NOISY = """
import warnings, pytest

@pytest.mark.filterwarnings("ignore:noise")
def test_one():
    warnings.warn("noise")

def test_two():
    warnings.warn("noise")
"""


FAILURES = """
import mutants, pytest

def tell(items):
    print([mutants.failure(item, None, 9.0) for item in items])

pytest.main(["-s", "-W", "error::UserWarning:test_noise", "test_noise.py"], plugins=[mutants.Collected(tell)])
"""


def test_a_test_that_runs_for_a_mutant_ignores_the_warnings_that_it_is_marked_with(tmp_path):
    (tmp_path / "test_noise.py").write_text(NOISY)
    ran = subprocess.run(
        [sys.executable, "-c", FAILURES],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ATTACK)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[False, True]" in ran.stdout


def test_parts_of_a_study_are_compared_without_the_time_that_they_took(tmp_path):
    import kills

    from causal_shaping.io.inputs import with_checksum

    def held(found, seconds):
        part = with_checksum({"found": found, "seconds": seconds, "cpu_seconds": seconds / 2})
        (tmp_path / "parts").mkdir(exist_ok=True)
        (tmp_path / "parts" / "a.json").write_text(json.dumps(part))
        return kills.contents(tmp_path)

    assert held([1], 3.0) == held([1], 4.0)
    assert held([1], 3.0) != held([2], 3.0)
