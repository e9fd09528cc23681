"""The tables of the documentation are what the code gives today."""

import re
from pathlib import Path
from types import SimpleNamespace

import check
import pytest

import causal_shaping
from studies.docs.tables import HERE, TABLES, theory_table
from studies.paper.theory import contraction, corrections, events, examination, lemmas, regret, shaped

MODULES = (contraction, corrections, events, examination, lemmas, regret, shaped)
THEORY = SimpleNamespace(**{name: value for module in MODULES for name, value in vars(module).items()})


def test_every_table_has_its_place_and_is_filled():
    for page, tables in TABLES.items():
        text = (Path(HERE) / page).read_text()
        for name in tables:
            inside = text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
            assert inside.count("|") >= 20 or page in ("../README.md", "index.md", "evidence.md")
            assert len(inside.split()) > (20 if page != "../README.md" else 10)


@pytest.mark.parametrize(
    ("page", "name"),
    [("evidence.md", name) for name in ("field", "rivals")]
    + [("../studies/speed/README.md", "speed")]
    + [("learners.md", name) for name in ("posterior", "hard", "potentials")],
)
def test_tables_of_kept_figures_are_those_of_the_page(page, name):
    text = (Path(HERE) / page).read_text()
    assert "\n".join(TABLES[page][name]()) in text


def test_every_statement_of_the_paper_has_a_function_and_a_test():
    page = (HERE.parent / "studies" / "paper" / "theory.md").read_text()
    section = page.split("## From the paper to the code")[1].split("## Printed and corrected")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")][
        2:
    ]
    assert len(rows) == 19
    for statement, functions, test, verdict in rows:
        assert statement
        assert verdict
        for name in re.findall(r"`([\w.]+)`", functions):
            place = causal_shaping if name.startswith("causal_shaping.") else THEORY
            for part in name.removeprefix("causal_shaping.").split("."):
                place = getattr(place, part)
        file, function = test.strip("`").split("::")
        assert f"def {function}(" in (HERE.parent / "tests" / file).read_text()


def test_tests_that_the_theory_page_names_exist():
    page = (HERE.parent / "studies" / "paper" / "theory.md").read_text()
    defined = "".join(path.read_text() for path in (HERE.parent / "tests").rglob("test_*.py"))
    named = set(re.findall(r"\btest_\w+(?=`)", page))
    assert len(named) > 20
    for name in named:
        assert f"def {name}(" in defined, name


def test_every_module_of_the_walk_of_one_row_exists():
    walk = (HERE / "architecture.md").read_text().split("## The walk of one row")[1].split("## ")[0]
    named = re.findall(r"`(\w+/\w+\.py)`", walk)
    assert len(named) > 10
    assert [name for name in named if not (HERE.parent / "src" / "causal_shaping" / name).exists()] == []


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text() for page in (HERE / "reference").glob("*.md"))
    named = set(re.findall(r"^::: causal_shaping\.(\w+)$", pages, flags=re.MULTILINE))
    assert set(causal_shaping.__all__) - named == set()
    assert named - set(causal_shaping.__all__) == set()


def test_the_corrections_are_those_of_the_page():
    page = (HERE.parent / "studies" / "paper" / "theory.md").read_text()
    rows = theory_table("theory-corrections", worlds=())
    assert len(rows) == 17
    for row in rows:
        assert row in page


def test_the_checks_find_what_is_broken(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("# Here\n\n[a](missing.md) [b](#nowhere) [c](#here) [d](http://plain) `test_that_is_not_there`\n")
    monkeypatch.setattr(check, "PAGES", [page])
    monkeypatch.setattr(check, "ROOT", tmp_path)
    found = list(check.links())
    assert [problem.split(": ")[1] for problem in found] == [
        "missing.md does not exist",
        "#nowhere has no such heading",
        "http://plain is not https",
    ]
    (tmp_path / "tests").mkdir()
    assert list(check.promises()) == ["page.md: there is no test test_that_is_not_there"]
    (tmp_path / "tests" / "test_here.py").write_text("def test_moved():\n")
    page.write_text("`test_moved` `tests/test_here.py::test_moved` `tests/test_there.py::test_moved`\n")
    assert list(check.promises()) == ["page.md: there is no test test_moved in tests/test_there.py"]
    (tmp_path / "index.html").write_text(
        '<p id="a"></p><a href="b.html">b</a><script src="https://far/away.js"></script>'
    )
    assert list(check.built(tmp_path)) == ["index.html loads https://far/away.js", "index.html: b.html does not exist"]


def test_tutorials_are_held_against_their_scripts(tmp_path, monkeypatch):
    (tmp_path / "docs" / "tutorials").mkdir(parents=True)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "own_logs.py").write_text("def main():\n    one()\n    two()\n")
    page = tmp_path / "docs" / "tutorials" / "own-logs.md"
    monkeypatch.setattr(check, "ROOT", tmp_path)
    page.write_text("`examples/own_logs.py`\n```python\none()\n```\n\n```python\ntwo()\n```\n")
    assert list(check.tutorials()) == []
    page.write_text("`examples/own_logs.py`\n```python\ntwo()\n```\n\n```python\none()\n```\n")
    (found,) = check.tutorials()
    assert "not in this order" in found
    page.write_text("```python\none()\n```\n")
    assert [*check.tutorials()] == ["docs/tutorials/own-logs.md names no script, or has no Python"]
