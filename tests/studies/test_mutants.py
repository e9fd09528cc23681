"""The program that changes code: each change is one, and golden results notice those that matter."""

import ast

from studies import mutants


def test_a_mutant_changes_one_place_of_one_file():
    every = mutants.mutants("bounds/_joint.py")
    assert len(every) > 100
    for _, name, number in every[::20]:
        before = ast.unparse(ast.parse((mutants.PACKAGE / name).read_text())).splitlines()
        after = mutants.mutated(name, int(number)).splitlines()
        assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) <= 2


def test_a_sign_that_is_turned_in_a_backup_is_noticed(monkeypatch):
    changes = {what: number for what, _, number in mutants.mutants("bounds/_joint.py")}
    number = next(number for what, number in reversed(changes.items()) if "Sub -> Add" in what)
    monkeypatch.setattr(mutants, "KINDS", ("bounds",))
    assert mutants.verdict("bounds/_joint.py", int(number), "tiny").startswith("noticed: bounds: tiny|")
