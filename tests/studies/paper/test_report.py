"""The report, looked at in a real browser: whole, silent, and without a network."""

import re
from dataclasses import replace

import pytest
from browser import FOUND, Browser
from matplotlib.figure import Figure

import causal_shaping as cs
from studies.pages import Drawing, save_figure, write_figures, write_page
from studies.paper.figures import all_figures
from studies.paper.findings import findings
from studies.paper.report import shown
from studies.paper.run import Results
from studies.paper.tables import all_tables

SCRIPT = "<script>document.title = 'taken'; alert(1)</script>"


@pytest.fixture(scope="module")
def page(small):
    return small.folder / "index.html"


def test_the_report_needs_no_network(page):
    text = page.read_text(encoding="utf-8")
    for address in re.findall(r'(?:src|href|srcset|data|action)="([^"]*)"', text):
        assert address.startswith(("data:", "#")), address
    assert "@import" not in text
    assert not re.search(r"url\((?!['\"]?data:)", text)


def test_the_report_holds_what_was_run(small, page):
    text = page.read_text(encoding="utf-8")
    for table in all_tables(small).values():
        assert f'id="table-{table.name}"' in text
        assert (small.folder / "tables" / f"{table.name}.csv").read_text() == table.to_csv()
        assert (small.folder / "tables" / f"{table.name}.tex").exists()
    worlds = {name: cs.load_world(name) for name, _ in small.variants}
    for drawing in all_figures(small, worlds):
        assert (small.folder / "figures" / f"{drawing.name}.svg").stat().st_size > 1000
    assert "A quick run" in text
    assert "python -m studies.paper --quick --seeds 3 --no-bcq --only world=lavacross-hard" in text


def test_findings_tell_the_numbers_of_the_results(small):
    found = dict(findings(small))
    regret = small.values("lavacross-hard", "zero", "regret").mean()
    assert f"lavacross-hard {regret:.0f} against" in found["Most of the published gain needs no logs"]
    assert "Zero potential" not in found["Where confounded logs earn their keep"]
    none = Results(small.folder, small.settings, small.runs_of("lavacross-easy", "zero"), ())
    assert dict(findings(none)) == {}


def test_equal_results_are_drawn_alike(small, tmp_path):
    drawing = next(one for one in all_figures(small, {}) if one.name == "map-walking-robot")  # values on a map
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        save_figure(drawing, tmp_path / name)
    for ending in ("png", "svg", "pdf"):
        first, again = ((tmp_path / name / f"{drawing.name}.{ending}").read_bytes() for name in ("first", "again"))
        assert len(first) > 1000
        assert first == again


def named(results, name, world):
    """The same results under another name of a world, and that world."""
    rows = tuple({**row, "world": name} for row in results.runs if row["world"] == world)
    facts = tuple({**row, "world": name} for row in results.potentials if row["world"] == world)
    return replace(results, runs=rows, potentials=facts), {name: replace(cs.load_world(world), name=name, title=name)}


def test_a_world_with_a_name_of_markup_stays_text(small, tmp_path):
    results, worlds = named(small, SCRIPT, "lavacross-easy")
    drawings = [Drawing("map-walking-robot", SCRIPT, Figure)]
    seen = shown(results, worlds, all_tables(results), write_figures(tmp_path, drawings))
    text = write_page(tmp_path, "paper.html", **seen).read_text()
    assert SCRIPT not in text
    assert "&lt;script&gt;document.title" in text
    if FOUND:
        with Browser(tmp_path / "browser") as browser:
            browser.open((tmp_path / "index.html").as_uri())
            assert browser.run("document.title").startswith("Reward shaping")
            assert browser.said == []
