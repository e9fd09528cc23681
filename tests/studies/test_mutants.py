"""The program that changes code: each change is one, and its name says which."""

import ast

from studies import mutants


def test_a_mutant_changes_one_node_of_one_file():
    every = mutants.mutants("_joint")
    assert len(every) > 20
    before = ast.unparse(ast.parse((mutants.PACKAGE / "bounds/_joint.py").read_text())).splitlines()
    for number, name in list(enumerate(every))[::10]:
        assert name.startswith("bounds/_joint.py:")
        assert name.endswith(f", {number})")
        after = mutants.mutated("bounds/_joint.py", number).splitlines()
        assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) <= 2


def test_a_change_is_noticed_where_the_comparison_fails_and_survives_elsewhere(tmp_path, monkeypatch):
    (name, *_) = mutants.mutants("_joint")
    for code, expected in ((0, "survived"), (1, "noticed")):
        program = tmp_path / f"{code}.py"
        program.write_text(f"import causal_shaping, sys\nprint(causal_shaping.__file__)\nsys.exit({code})")
        monkeypatch.setattr(mutants, "GOLDEN", program)
        found = mutants.verdict(name)
        assert found["verdict"] == expected
    assert str(mutants.PACKAGE) not in found["by"]
