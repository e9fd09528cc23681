"""What the field study runs."""

import re
from dataclasses import replace
from pathlib import Path

from studies.field import plan as plans
from studies.field.plan import DRAW_SEED, FAMILIES, FIRST_SEED, Plan

ROOT = Path(__file__).parents[3]


def test_no_other_seed_of_the_repository_is_among_those_of_the_study():
    ours, ours_seeds = ROOT / "studies/field", range(FIRST_SEED, FIRST_SEED + 400_000)
    assert DRAW_SEED in ours_seeds
    numbers = re.compile(r"(?i)seed[a-z_]*\D{0,40}?\b(\d[\d_]{5,})")
    for folder in ("src", "tests", "studies", "examples", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            if ours not in path.parents and path != Path(__file__):
                for found in numbers.findall(path.read_text("utf-8")):
                    assert int(found.replace("_", "")) not in ours_seeds, f"{path}: {found}"


def test_every_case_has_a_part_of_its_own_and_quick_is_few_of_them():
    quick, full = Plan(quick=True).jobs(), Plan().jobs()
    every = sum(len({case.place for case in family.cases if case.rows}) for family in FAMILIES.values())
    assert len(full) == every + sum(len(family.cases) for family in FAMILIES.values())
    assert set(quick) < set(full)
    assert len(quick) < len(full) / 5
    assert {case.family for case in quick.values()} == set(FAMILIES)


def test_settings_change_with_what_is_run(monkeypatch):
    before = Plan().settings()
    assert Plan(families=("random",)).settings() == before
    assert Plan(quick=True).settings() != before
    fewer = FAMILIES | {"random": replace(FAMILIES["random"], draws=3)}
    for name, other in (("SETTINGS", {"psrl": {"prior": 9.0}}), ("FIRST_SEED", 1), ("FAMILIES", fewer)):
        with monkeypatch.context() as patched:
            patched.setattr(plans, name, other)
            assert Plan().settings() != before
