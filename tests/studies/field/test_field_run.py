"""Running the field study: nothing is lost, nothing is run twice, and it does not matter how often it was stopped."""

import pytest
from killing import finished, killed_five_times
from small_field import shrink, without_problems

from causal_shaping.errors import FileError
from studies.field import run as runs
from studies.field.__main__ import main
from studies.field.methods import METHODS
from studies.field.plan import LEARNER_SEED, Plan
from studies.field.run import FILES, run_field
from studies.field.sepsis import MissingPackageError
from studies.parts import FILES as PARTS


def parts_of(folder):
    return sorted(folder.glob(PARTS))


def test_a_run_that_is_killed_five_times_ends_in_the_same_results(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finished(without_problems, whole, modules=[run_field.__module__])
    done = killed_five_times(without_problems, killed, parts_of, most=2, modules=[run_field.__module__])
    assert 0 < done[0] < done[-1] < len(parts_of(whole))
    finished(without_problems, killed)
    for name in ("runs", "claims", "worths"):
        assert (killed / FILES[name]).read_bytes() == (whole / FILES[name]).read_bytes()


def test_every_method_runs_in_every_case_and_what_needs_no_logs_once_a_world(small):
    assert {row["seed"] for row in small.runs} == {LEARNER_SEED, LEARNER_SEED + 1}
    assert all(row["regret"] >= 0 for row in small.runs)
    for family, cases, places in (("random", 4, 4), ("problems", 2, 1)):
        for name, method in METHODS.items():
            own = {row["case"] for row in small.runs if (row["family"], row["name"]) == (family, name)}
            assert len(own) == (cases if method.uses_logs else places)


def test_a_second_call_runs_nothing_again(tmp_path, monkeypatch):
    shrink(monkeypatch)
    first, _ = run_field(Plan(families=("clinic",)), tmp_path)
    (part,) = parts_of(tmp_path)
    stamp = part.stat().st_mtime_ns
    again, _ = run_field(Plan(families=("clinic",)), tmp_path)
    assert (again.claims, part.stat().st_mtime_ns) == (first.claims, stamp)


def test_a_family_without_its_data_is_left_out_and_the_others_run(tmp_path, monkeypatch):
    def missing():
        raise MissingPackageError("Install icu-sepsis.")

    monkeypatch.setattr(runs, "package_folder", missing)
    results, left_out = run_field(Plan(quick=True, families=("clinic", "sepsis")), tmp_path)
    assert {row["family"] for row in results.claims} == {"clinic"}
    assert left_out == ["sepsis: Install icu-sepsis."]
    with pytest.raises(MissingPackageError, match="Install icu-sepsis"):
        run_field(Plan(quick=True, families=("sepsis",)), tmp_path)


def test_other_settings_and_broken_parts_are_refused(tmp_path, capsys):
    clinic = ["--quick", "--families", "clinic", "--workers", "1", "-o", str(tmp_path)]
    assert main(clinic) == 0
    with pytest.raises(FileError, match="holds runs with another"):
        run_field(Plan(families=("clinic",)), tmp_path)
    (part,) = parts_of(tmp_path)
    held = part.read_bytes()
    for place in range(0, len(held), 997):
        part.write_bytes(held[:place] + bytes([held[place] ^ 1]) + held[place + 1 :])
        with pytest.raises(SystemExit, match="2"):
            main(clinic)
        assert "Remove it to run that part again" in capsys.readouterr().err


def test_the_program_teaches_and_refuses_other_families(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "goes on where it" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--families", "mars", "-o", "nowhere"])
    assert "no family 'mars'. There are random, problems" in capsys.readouterr().err
