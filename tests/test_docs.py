"""The tables of the documentation are what the code gives today."""

import re
from pathlib import Path

import pytest
from tables import HERE, TABLES, theory_table, world_table

import causal_shaping
from causal_shaping import theory


@pytest.mark.parametrize(("name", "coins"), [("walking-robot", "standing"), ("lavacross-easy", "standing")])
def test_the_population_figures_are_those_of_the_page(name, coins):
    page = (HERE / "ceilings.md").read_text()
    title = f"### {name}" if name == "walking-robot" else f"### {name}, coins {coins}"
    section = page.split(title + "\n")[1].split("###")[0]
    rows = world_table(name, coins, logs=False)[2:]
    assert len(rows) == 8
    for row in rows:
        assert row.removesuffix("|") in section


def test_every_table_has_its_place_and_is_filled():
    for page, tables in TABLES.items():
        text = (Path(HERE) / page).read_text()
        for name in tables:
            inside = text.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
            assert inside.count("|") >= 20


def test_every_statement_of_the_paper_has_a_function_and_a_test():
    page = (HERE / "theory.md").read_text()
    section = page.split("## From the paper to the code")[1].split("## Printed and corrected")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")][
        2:
    ]
    assert len(rows) == 19
    for statement, functions, test, verdict in rows:
        assert statement
        assert verdict
        for name in re.findall(r"`([\w.]+)`", functions):
            place = causal_shaping if name.startswith("causal_shaping.") else theory
            for part in name.removeprefix("causal_shaping.").split("."):
                place = getattr(place, part)
        file, function = test.strip("`").split("::")
        assert f"def {function}(" in (HERE.parent / "tests" / file).read_text()


def test_tests_that_the_theory_page_names_exist():
    page = (HERE / "theory.md").read_text()
    defined = "".join(path.read_text() for path in (HERE.parent / "tests").rglob("test_*.py"))
    named = set(re.findall(r"\btest_\w+(?=`)", page))
    assert len(named) > 25
    for name in named:
        assert f"def {name}(" in defined, name


def test_the_corrections_are_those_of_the_page():
    page = (HERE / "theory.md").read_text()
    rows = theory_table("theory-corrections", worlds=())
    assert len(rows) == 17
    for row in rows:
        assert row in page
