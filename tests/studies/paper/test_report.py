"""The report, looked at in a real browser: whole, silent, and without a network."""

import re
from dataclasses import replace

import pytest
from browser import FOUND, MISSING, Browser
from matplotlib.figure import Figure

import causal_shaping as cs
from studies.paper.figures import Drawing, all_figures, save_figure
from studies.paper.findings import findings, headlines
from studies.paper.maps import arrow_angle, policy_panels, value_panels
from studies.paper.plan import Plan
from studies.paper.report import render, reproduce, write_report
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

    monkeypatch.setattr("studies.paper.report.save_figure", save_figure)


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


def test_maps_share_a_scale_and_mark_what_is_not_optimal():
    world = cs.load_world("lavacross-easy")
    best = world.model.optimum()
    panels = value_panels(world, {"low": best.values - 1, "high": best.values})
    cells = [{(cell["x"], cell["y"]): cell for cell in panel["cells"]} for panel in panels]
    assert cells[0][1, 1]["tip"] == cells[1][1, 1]["tip"]
    assert cells[0][1, 1]["fill"] != cells[1][1, 1]["fill"]
    (right,) = policy_panels(world, {"optimal": best.greedy()})
    assert right["title"] == "optimal"
    assert not any(cell.get("wrong") for cell in right["cells"])
    (wrong,) = policy_panels(world, {"still": best.greedy() * 0 + world.actions.index("still")})
    marked = sum(cell.get("wrong", False) for cell in wrong["cells"])
    assert marked == (world.model.gaps()[:, -1][~world.model.terminal] > 1e-3).sum()
    assert [arrow_angle(way) for way in ((1, 0), (0, 1), (-1, 0), (0, -1))] == [0, 90, 180, -90]


def named(results, name, world):
    """The same results under another name of a world, and that world."""
    rows = tuple({**row, "world": name} for row in results.runs if row["world"] == world)
    facts = tuple({**row, "world": name} for row in results.potentials if row["world"] == world)
    return replace(results, runs=rows, potentials=facts), {name: replace(cs.load_world(world), name=name, title=name)}


def test_a_world_with_a_name_of_markup_stays_text(small, tmp_path):
    results, worlds = named(small, SCRIPT, "lavacross-easy")
    drawings = [Drawing("map-walking-robot", SCRIPT, Figure)]
    save_figure(drawings[0], _figures(tmp_path))
    text = render(replace(results, folder=tmp_path), worlds, all_tables(results), drawings)
    assert SCRIPT not in text
    assert "&lt;script&gt;document.title" in text
    if FOUND:
        (tmp_path / "index.html").write_text(text, encoding="utf-8")
        with Browser(tmp_path / "browser") as browser:
            browser.open((tmp_path / "index.html").as_uri())
            assert browser.run("document.title").startswith("Reward shaping")
            assert browser.said == []


def _figures(folder):
    (folder / "figures").mkdir()
    return folder / "figures"


@pytest.mark.parametrize(
    "chosen",
    [
        lambda row: row["name"] == "zero" and row["world"] == "lavacross-easy",
        lambda row: row["name"] in ("joint", "oracle") and row["coins"] == "once",
        lambda row: row["name"] == "joint" and row["seed"] == 1,
        lambda row: row["world"] == "lavacross-easy" or row["seed"] == 0,
    ],
    ids=["one method", "coins once alone", "without the baseline", "other seeds in another world"],
)
@pytest.mark.usefixtures("without_pictures")
def test_a_report_of_part_of_the_study_is_written_too(small, tmp_path, chosen):
    runs, facts = (tuple(filter(chosen, rows)) for rows in (small.runs, small.potentials))
    page = write_report(Results(tmp_path, {**small.settings, "quick": False}, runs, facts), workers=1)
    text = page.read_text(encoding="utf-8")
    assert "These results were made without BCQ" in text
    assert "What is missing in lavacross-hard" not in text  # not all worlds are there


def test_findings_never_round_in_their_own_favour(small):
    def rows(name, regret, **more):
        return {**small.runs_of("lavacross-easy", "zero")[0], "name": name, "regret": regret, **more}

    runs = (rows("zero", 100.0), rows("causal-bound", 110.0), rows("no-shaping", 1099.0), rows("joint", 70.1))
    found = dict(findings(Results(small.folder, small.settings, runs, ())))
    assert "at least 9 times better" in found["Most of the published gain needs no logs"]  # 1099 / 110 = 9.99
    assert "(0 of 1 worlds)" in found["Where potentials from confounded logs earn their keep"]
    step = {**small.potentials_of("lavacross-easy", "joint")[0], "violations": 0, "violations_all_steps": 3}
    text = dict(findings(Results(small.folder, small.settings, runs, (step,))))["Which bounds hold"]
    assert "in 1 of 1 sets of logs" in text


@pytest.mark.skipif(FOUND is None, reason=MISSING)
def test_a_browser_shows_the_report(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.open(page.as_uri())
        assert browser.run("[...document.images].map(one => one.loading = 'eager').length") >= 6
        broken = browser.run(
            "Promise.all([...document.images].map(one => one.decode().then(() => null, () => one.alt)))"
            ".then(all => all.filter(Boolean))"
        )
        assert broken == []
        assert browser.run("[...document.images].every(one => one.naturalWidth > 100)")
        assert browser.run("document.querySelectorAll('table tbody tr').length") > 100
        assert browser.run("document.querySelectorAll('section h2').length") >= 9
        links = browser.run("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
        assert links
        assert [address for address in browser.fetched if not address.startswith(("file:", "data:"))] == []
        assert [address for address in browser.fetched if address.startswith("file:")] == [page.as_uri()]
        assert browser.run("document.querySelectorAll('figure.table:not(details figure)').length") == 0  # folded
        assert browser.said == []


@pytest.mark.skipif(FOUND is None, reason=MISSING)
def test_hovering_over_a_cell_shows_its_values(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.open(page.as_uri())
        assert browser.run("document.getElementById('tip').hidden")
        x, y = browser.run(
            "(() => { const cell = [...document.querySelectorAll('[data-tip]')]"
            ".find(one => one.dataset.tip.startsWith('(1, 1): V*'));"
            "cell.scrollIntoView({block: 'center'}); const box = cell.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
        browser.move(x, y)
        assert not browser.run("document.getElementById('tip').hidden")
        shown = browser.run("document.getElementById('tip').textContent")
        world = cs.load_world("lavacross-easy")
        value = world.model.optimum(world.horizon).values[0][world.state_at(1, 1)]
        assert shown.startswith(f"(1, 1): V* {value:.3f}, joint ceilings ")
        browser.move(2, 2)
        assert browser.run("document.getElementById('tip').hidden")
        assert browser.said == []


@pytest.mark.skipif(FOUND is None, reason=MISSING)
def test_a_phone_needs_no_sideways_scrolling(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        browser.open(page.as_uri())
        assert browser.run("document.documentElement.scrollWidth") <= 390


@pytest.mark.skipif(FOUND is None, reason=MISSING)
def test_the_first_screen_says_what_was_found(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        browser.open(page.as_uri())
        ends = browser.run("[...document.querySelectorAll('.headlines li')].map(o => o.getBoundingClientRect().bottom)")
        assert len(ends) == 7
        assert max(ends) <= 800


@pytest.mark.skipif(FOUND is None, reason=MISSING)
def test_a_table_of_the_report_sorts(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.open(page.as_uri())
        rows = "[...document.querySelectorAll('#table-potentials tbody tr')]"
        browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        browser.run("document.querySelectorAll('#table-potentials th')[1].click()")
        found = browser.run(f"{rows}.map(row => parseFloat(row.cells[1].innerText))")
        assert found == sorted(found)
        assert len(set(found)) > 5
