"""The report, looked at in a real browser: whole, silent, and without a network."""

import re
from dataclasses import replace

import pytest
from browser import FOUND, Browser
from matplotlib.figure import Figure

import causal_shaping as cs
from studies.pages import Drawing, save_figure, write_figures, write_page
from studies.paper.figures import all_figures
from studies.paper.findings import findings, headlines
from studies.paper.plan import Plan
from studies.paper.report import reproduce, shown, write_report
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
    for drawing in all_figures(small, worlds, all_tables(small)):
        assert (small.folder / "figures" / f"{drawing.name}.svg").stat().st_size > 1000
    assert "A quick run" in text
    assert "python -m studies.paper --quick --seeds 3 --no-bcq --only world=lavacross-hard" in text
    assert "What is missing in lavacross-hard" not in text  # said of the whole study alone
    assert 'id="differences"' in text


def test_seven_sentences_tell_what_was_found_with_a_number_each(small):
    found = headlines(small)
    assert len(found) == 7
    for one in found:
        assert re.match(r"[\d.]+( of \d+|%| times)$", one.number)
        assert one.sentence.endswith(".")
        assert len(one.sentence.split()) < 40
    assert "with a tenth of its budgets" in found[0].sentence
    held = sum(row["violations_all_steps"] == 0 for row in small.potentials if row["name"] == "joint-sure")
    assert found[6].number == f"{held} of {sum(row['name'] == 'joint-sure' for row in small.potentials)}"


def test_sentences_never_round_in_their_own_favour(small):
    def row(name, regret, **more):
        return {**small.runs_of("lavacross-easy", "zero")[0], "name": name, "regret": regret, **more}

    runs = (row("zero", 100.0), row("causal-bound", 50.0), row("joint-plain", 70.1), row("avg", 90.0))
    runs += (row("posterior", 7.01, optimal=0.9499),)
    broken = {**small.potentials_of("lavacross-easy", "joint-sure")[0], "violations_all_steps": 1}
    found = headlines(Results(small.folder, {**small.settings, "quick": False}, runs, (broken,)))
    assert (found[1].number, "the logs do help it" in found[1].sentence) == ("2.00 times", True)
    assert found[2].number == "71%"
    assert found[3].number == "8%"
    assert (found[4].number, "short of the aim" in found[4].sentence) == ("94%", True)
    assert found[5].number == "0.9 times"
    assert found[6].number == "0 of 1"


def test_sentences_say_what_part_of_the_study_cannot_tell(small):
    none = Results(small.folder, small.settings, small.runs_of("lavacross-easy", "zero"), ())
    assert [one.number for one in headlines(none)] == [""] * 7
    assert all("do not hold the runs that would tell" in one.sentence for one in headlines(none))


@pytest.fixture
def without_pictures(monkeypatch):
    """Make the figures of results, but no pictures of them: those of the small study are looked at."""

    def save_figure(drawing, folder):
        assert drawing.name.startswith("map-") or drawing.draw().axes
        (folder / f"{drawing.name}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')

    monkeypatch.setattr("studies.pages.save_figure", save_figure)


@pytest.mark.usefixtures("without_pictures")
def test_all_is_written_when_all_is_done(small, tmp_path):
    told = []

    def progress(done, total, what):
        assert what
        assert (done == total) == (tmp_path / "index.html").exists()
        told.append(done / total)

    rows = [row for row in small.runs if row["name"] == "zero" and row["world"] == "lavacross-easy"]
    write_report(Results(tmp_path, small.settings, tuple(rows), ()), workers=1, progress=progress)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) > 10


@pytest.mark.usefixtures("without_pictures")
def test_running_and_reporting_are_one_piece_of_work(tmp_path):
    told = []
    plan = Plan(seeds=1, quick=True, deep=False, only={"world": ["lavacross-easy"], "method": ["zero"]})
    results, page = reproduce(plan, tmp_path, workers=1, progress=lambda *call: told.append(call))
    assert page.exists()
    assert len(results.runs) == 1
    shares = [done / total for done, total, _ in told]
    assert shares == sorted(shares)
    assert [share == 1 for share in shares].count(True) == 1
    assert any("lavacross-easy" in what for _, _, what in told)


def test_findings_tell_the_numbers_of_the_results(small):
    found = dict(findings(small))
    regret = small.values("lavacross-hard", "zero", "regret").mean()
    assert f"lavacross-hard {regret:.0f} against" in found["Most of the published gain needs no logs"]
    shares = found["One configuration"]  # not all worlds were run
    assert f"lavacross-easy {small.values('lavacross-easy', 'posterior', 'optimal').mean():.3f}" in shares
    none = Results(small.folder, small.settings, small.runs_of("lavacross-easy", "zero"), ())
    assert dict(findings(none)) == {}


def test_findings_say_where_sampling_loses_to_a_zero_potential(small):
    def row(name, regret):
        return {**small.runs_of("lavacross-easy", "zero")[0], "name": name, "regret": regret}

    runs = (row("zero", 100.0), row("posterior-no-logs", 250.0), row("posterior", 2.0))
    found = dict(findings(Results(small.folder, small.settings, runs, ())))
    text = found["What logs suggest, and how far it can be trusted"]
    assert "Posterior: 0.020 to 0.020 with coins standing." in text
    assert "It loses to a zero potential here: Posterior, no logs in lavacross-easy, coins standing (2.50)." in text
    better = tuple({**run, "regret": 1.0} if run["name"] != "zero" else run for run in runs)
    found = dict(findings(Results(small.folder, small.settings, better, ())))
    assert "Nowhere does it lose" in found["What logs suggest, and how far it can be trusted"]


def test_equal_results_are_drawn_alike(small, tmp_path):
    drawing = next(one for one in all_figures(small, {}, {}) if one.name == "map-walking-robot")  # values on a map
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
    text = write_page(tmp_path, "studies.paper", "report.html", **seen).read_text()
    assert SCRIPT not in text
    assert "&lt;script&gt;document.title" in text
    if FOUND:
        with Browser(tmp_path / "browser") as browser:
            browser.open((tmp_path / "index.html").as_uri())
            assert browser.run("document.title").startswith("Reward shaping")
            assert browser.said == []
