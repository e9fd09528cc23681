"""What the field study runs."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import forked
import pytest

from causal_shaping.errors import CausalShapingError
from studies.field import plan as plans
from studies.field.demonstrators import CONFOUNDING, SKILLS
from studies.field.methods import RUNNERS
from studies.field.plan import (
    DRAW_SEED,
    FAMILIES,
    FIRST_SEED,
    METHODS,
    RUN,
    WORTH,
    Plan,
)
from studies.field.random_worlds import SHAPES

ROOT = Path(__file__).parents[3]


def units_of(plan):
    return [unit for job in plan.jobs() for unit in job.units]


def test_every_unit_is_run_once_and_has_a_file_of_its_own():
    units = units_of(Plan())
    assert max(Counter(unit.path for unit in units).values()) == 1


def test_there_are_two_hundred_random_worlds_of_all_shapes_skills_confounding_and_lengths():
    cases = FAMILIES["random"].cases
    assert len({case.place for case in cases}) == len(cases) == 200
    for shape in SHAPES:
        some = [case for case in cases if case.kind == shape]
        assert {(case.skill, case.confounding) for case in some} == {(a, b) for a in SKILLS for b in CONFOUNDING}
        assert len({case.rows for case in some}) == 3


def test_every_method_runs_in_every_case_and_what_needs_no_logs_once_a_world():
    units = units_of(Plan())
    assert set(METHODS) == set(RUNNERS)
    usual = METHODS
    assert {unit.name for unit in units if unit.kind == RUN} == set(usual)
    for family in ("random", "problems", "sepsis"):
        cases, places = {case.name for case in FAMILIES[family].cases}, {case.place for case in FAMILIES[family].cases}
        for name, method in usual.items():
            found = {unit.case for unit in units if (unit.family, unit.kind, unit.name) == (family, RUN, name)}
            assert found == (cases if method.uses_logs else {f"{place}-no-logs" for place in places})
        assert {unit.case for unit in units if (unit.family, unit.kind) == (family, WORTH)} == cases


def test_no_other_seed_of_the_repository_is_among_those_of_the_study():
    ours, ours_seeds = ROOT / "studies/field", range(FIRST_SEED, FIRST_SEED + 400_000)
    assert DRAW_SEED in ours_seeds
    numbers = re.compile(r"(?i)seed[a-z_]*\D{0,40}?\b(\d[\d_]{5,})")
    for folder in ("src", "tests", "studies", "examples", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            if ours in path.parents or path == Path(__file__):
                continue
            for found in numbers.findall(path.read_text("utf-8")):
                assert int(found.replace("_", "")) not in ours_seeds, f"{path}: {found}"


def test_quick_is_a_small_part():
    quick, full = units_of(Plan(quick=True)), units_of(Plan())
    assert {unit.path for unit in quick} < {unit.path for unit in full}
    assert len(quick) < len(full) / 5
    assert {unit.family for unit in quick} == set(FAMILIES)


def test_settings_change_with_what_is_run(monkeypatch):
    before = Plan().settings()
    assert Plan(families=("random",)).settings() == before
    assert Plan(quick=True).settings() != before
    for name, other in (
        ("SETTINGS", {"psrl": {"prior": 9.0}}),
        ("FIRST_SEED", 1),
        ("FAMILIES", {**FAMILIES, "random": replace(FAMILIES["random"], draws=3)}),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(plans, name, other)
            assert Plan().settings() != before
    script = "from studies.field.plan import Plan; print(Plan().settings()['plan'])"
    other_process = forked.run(script)
    assert other_process.stdout.strip() == before["plan"]


def test_an_unknown_family_is_refused():
    with pytest.raises(CausalShapingError, match=r"no family 'mars'.*random, problems"):
        Plan(families=("mars",))
