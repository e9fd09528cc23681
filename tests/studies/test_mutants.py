"""The program that changes code: each change is one, and golden results notice those that matter."""

import ast

from studies import mutants


def test_a_mutant_changes_one_place_of_one_file():
    every = mutants.mutants("bounds/joint.py")
    assert len(every) > 100
    for _, name, number in every[::20]:
        before = ast.unparse(ast.parse((mutants.PACKAGE / name).read_text())).splitlines()
        after = mutants.mutated(name, int(number)).splitlines()
        assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) <= 2


def test_a_sign_that_is_turned_in_a_backup_is_noticed(monkeypatch):
    lines = (mutants.PACKAGE / "bounds" / "joint.py").read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "np.maximum(1.0 - masses.proven" in text)
    changes = {what: number for what, _, number in mutants.mutants("bounds/joint.py")}
    number = next(number for what, number in changes.items() if f":{line} Sub -> Add" in what)
    monkeypatch.setattr(mutants, "KINDS", ("bounds",))
    assert mutants.verdict("bounds/joint.py", int(number), "tiny").startswith("noticed: bounds: tiny|")
