"""A field study that is small enough for tests."""

from dataclasses import replace

import pytest

from studies.field import plan as plans, run as runs
from studies.field.plan import FAMILIES, Plan


def shrink(patched):
    """Leave four cases of random worlds, two problems, and what claims without learners, of small budgets."""
    few, cases = {"steps": 300, "seeds": 2, "draws": 2}, FAMILIES["random"].cases
    problems = FAMILIES["problems"].cases[-2:]
    cut = {
        "random": replace(FAMILIES["random"], cases=cases[:2] + cases[80:82], **few),
        "problems": replace(FAMILIES["problems"], cases=problems, steps_of={}, **few),
        "clinic": FAMILIES["clinic"],
    }
    patched.setattr(plans, "FAMILIES", cut)
    patched.setattr(runs, "FAMILIES", cut)


def without_problems(folder):
    """Run the small study without its problems."""
    shrink(pytest.MonkeyPatch())
    runs.run_field(Plan(families=("random", "clinic")), folder)
