"""The tables of the documentation are what the code gives today."""

from pathlib import Path

import pytest
from tables import HERE, TABLES, world_table


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
