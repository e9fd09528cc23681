"""Running the field study: nothing is lost, nothing is run twice, and it does not matter how often it was stopped."""

import pytest
from killing import finished, killed_five_times
from small_field import USUAL, shrink, without_problems

from causal_shaping.errors import FileError
from studies.field import run as runs
from studies.field._packages import MissingPackageError
from studies.field.plan import LEARNER_SEED, Plan
from studies.field.run import CLAIMS, RESULTS, WORTHS, merge, run_field
from studies.parts import FILES

MERGED = (RESULTS, CLAIMS, WORTHS)


def parts_of(folder):
    return sorted(folder.glob(FILES))


def test_a_run_that_is_killed_five_times_ends_in_the_same_results(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finished(without_problems, whole, modules=[run_field.__module__])
    done = killed_five_times(without_problems, killed, parts_of, most=9, modules=[run_field.__module__])
    assert 0 < done[0] < done[-1] < len(parts_of(whole))
    finished(without_problems, killed)
    for name in MERGED:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


def test_a_run_holds_every_method_with_its_seeds_and_nothing_is_run_twice(small, tmp_path, monkeypatch):
    assert {row["name"] for row in small.runs} == USUAL
    assert {row["seed"] for row in small.runs} == {LEARNER_SEED, LEARNER_SEED + 1}
    assert all(row["regret"] == pytest.approx(row["curve"][-1]) for row in small.runs)
    shrink(monkeypatch)
    first, _ = run_field(Plan(families=("clinic",)), tmp_path, workers=1)
    stamps = {path: path.stat().st_mtime_ns for path in parts_of(tmp_path)}
    again, _ = run_field(Plan(families=("clinic",)), tmp_path, workers=1)
    assert again.claims == first.claims
    assert {path: path.stat().st_mtime_ns for path in parts_of(tmp_path)} == stamps


def test_what_was_merged_is_read_again(small):
    held = merge(small.folder)
    assert [row["regret"] for row in held.runs] == [row["regret"] for row in small.runs]
    assert [row["claim"] for row in held.claims] == [row["claim"] for row in small.claims]
    assert [row["predicted"] for row in held.worths] == [row["predicted"] for row in small.worths]


def test_a_family_without_its_data_is_left_out_and_the_others_run(tmp_path, monkeypatch):
    def missing(name):
        raise MissingPackageError(f"Install {name}.")

    monkeypatch.setattr(runs, "package_folder", missing)
    results, left_out = run_field(Plan(quick=True, families=("clinic", "sepsis", "lalonde")), tmp_path, workers=1)
    assert {row["family"] for row in results.claims} == {"clinic"}
    assert left_out == ["sepsis: Install icu-sepsis.", "lalonde: Install causaldata."]
    with pytest.raises(MissingPackageError, match="Install icu-sepsis"):
        run_field(Plan(quick=True, families=("sepsis",)), tmp_path, workers=1)


def test_other_settings_and_broken_parts_are_refused(tmp_path):
    clinic = ("clinic",)
    run_field(Plan(quick=True, families=clinic), tmp_path, workers=1)
    with pytest.raises(FileError, match="holds runs with another"):
        run_field(Plan(families=clinic), tmp_path, workers=1)
    (part,) = parts_of(tmp_path)
    part.write_text(part.read_text().replace('"seconds": ', '"seconds":  '))
    with pytest.raises(FileError, match="Remove it to run that part again"):
        merge(tmp_path)
