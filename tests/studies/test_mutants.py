"""The program that changes code: each change is one, and only a failing test notices it."""

import ast

from studies import mutants


def test_a_mutant_changes_one_node_of_one_file():
    every = list(mutants.mutants("shaping/"))
    assert len(every) > 100
    for one in every[::40]:
        before = ast.unparse(ast.parse((mutants.PACKAGE / one.file).read_text())).splitlines()
        after = one.text().splitlines()
        assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) <= 2
    assert " becomes " in every[0].change()


def test_a_change_is_noticed_by_a_test_that_fails_and_by_no_other(tmp_path):
    one = next(mutants.mutants("data/"))
    (tmp_path / "test_it.py").write_text("import causal_shaping as cs\ndef test_it(): assert '/tmp' in cs.__file__")
    name, trial = one.name(), mutants.Trial({one.name(): one}, (str(tmp_path / "test_it.py"), f"--rootdir={tmp_path}"))
    assert not trial(name)["noticed"]
    (tmp_path / "test_it.py").write_text("def test_it(): assert False")
    assert trial(name)["noticed"]
