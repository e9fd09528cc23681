"""Pages about one's own logs, looked at in a real browser: wide, on a phone, on paper; silent and without a network."""

import base64
import re

import numpy as np
import pandas as pd
import pytest
from browser import FOUND, MISSING, Browser

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, FileError

SCRIPT = "<script>document.title = 'taken'; alert(1)</script>"
browsing = pytest.mark.skipif(FOUND is None, reason=MISSING)


def ward(patients, share, seed):
    """Patients by age and stage, one of them named like a script, who get a drug or none on three days."""
    rng = np.random.default_rng(seed)
    rows = 3 * patients
    frame = pd.DataFrame({"episode": np.repeat(np.arange(patients), 3), "step": np.tile(np.arange(3), patients)})
    frame["age"] = rng.uniform(20, 90, rows)
    frame["stage"] = rng.choice(["mild", SCRIPT], rows, p=[0.9, 0.1])
    frame["action"] = rng.choice(["none", SCRIPT], rows, p=[share, 1 - share])
    frame["reward"] = rng.integers(2, size=rows).astype(float)
    frame["terminated"] = (frame.step == 2) & (rng.random(rows) < 0.97)
    frame["truncated"] = (frame.step == 2) & ~frame.terminated
    return frame


pytestmark = pytest.mark.filterwarnings("ignore:Many steps do not tell")  # of the ward


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a ward with labels of markup, and of a grid."""
    folder = tmp_path_factory.mktemp("pages")
    columns = {"state": ["age", "stage"], "bins": {"age": cs.Bins(edges=(40, 65))}}
    wards = {"ward": ward(200, 0.9, 0), SCRIPT: ward(60, 0.3, 1)}
    ward_logs = [cs.open_logs(frame, source=name, **columns) for name, frame in wards.items()]
    found = cs.inspect(ward_logs).without_small_cells(11)
    found.save_html(folder / "ward.html")
    bounds = {"confidence": 0.95}
    ceilings = cs.value_ceilings(found.counts, 3, 1.0, **bounds)
    floors = cs.value_floors(found.counts, 3, 0.0, **bounds)
    moved = cs.sensitivity(found.counts, 3, 1.0, 0.0, confounding=(2, float("inf")), **bounds)
    ceilings.save_html(folder / "ward-ceilings.html", floors=floors, sensitivity=moved, inspection=found)
    world = cs.load_world("lavacross-easy")
    grid = cs.inspect([world.collect(name, 20_000) for name in ("bad", "random")])
    grid.save_html(folder / "grid.html")
    cs.value_ceilings(grid.counts, 20, -0.1).save_html(folder / "grid-ceilings.html", inspection=grid)
    return folder


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(started):
    """The browser, as if it had just been started."""
    started.call("Emulation.clearDeviceMetricsOverride")
    started.call("Emulation.setEmulatedMedia", media="")
    started.open("about:blank")
    started.said, started.fetched = [], []
    return started


NAMES = ("ward", "ward-ceilings", "grid", "grid-ceilings")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_needs_no_network_and_labels_stay_text(pages, name):
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    for address in re.findall(r'(?:src|href|srcset|data|action)="([^"]*)"', text):
        assert address.startswith(("data:", "#")), address
    assert "@import" not in text
    assert SCRIPT not in text
    assert ("&lt;script&gt;document.title" in text) == name.startswith("ward")
    for picture in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', text):
        assert b"<script" not in base64.b64decode(picture)


def test_a_page_tells_what_was_found(pages):
    text = (pages / "grid-ceilings.html").read_text(encoding="utf-8")
    for part in ("verdict", "logged", "coverage", "contradictions", "sources", "states", "assumptions"):
        assert f'<section id="{part}">' in text
    assert '<section id="sensitivity">' not in text
    assert "bad and random disagree on what right does in (3, 1)" in text
    assert text.count('type="checkbox"') == 9
    assert "2,137" in text


def verdict_of(page):
    """The verdict of a page, without tags."""
    text = page.read_text(encoding="utf-8")
    section = text[text.index('<div class="verdict') : text.index("A <b>ceiling</b>")]
    return re.sub("<.*?>", " ", section)


def test_a_headline_judges_ceilings_as_a_potential_and_not_the_logs(tmp_path):
    world = cs.load_world("lavacross-easy")
    exact = world.model.observe(world.demonstrators["good"], "good")
    helpful = cs.value_ceilings(exact, 20, -0.1, confounding=1.0, support="any")
    assert helpful.informative
    helpful.save_html(tmp_path / "x.html")
    verdict = verdict_of(tmp_path / "x.html")
    assert "As a potential, these ceilings are expected to help a learner." in verdict
    assert "These logs" not in verdict


def test_logs_under_unhelpful_ceilings_can_be_worth_much(tmp_path):
    """The headline said that such logs "say too little to guide a learner": here they save most of the regret."""
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 3000) for name in ("good", "random")])
    ceilings = cs.value_ceilings(counts, 20, -0.1, confidence=0.95)
    assert ceilings.informative is False
    ceilings.save_html(tmp_path / "x.html")
    verdict = verdict_of(tmp_path / "x.html")
    assert "As a potential, these ceilings are not expected to help a learner." in verdict
    assert "an agent that starts from the counts of the same logs may still learn faster" in verdict
    assert "These logs" not in verdict
    worth = cs.posterior(counts, 20, -0.1).worth(steps=2000, seeds=4)
    without, with_logs = (curves[:, -1].mean() for curves in worth.curves()[1:])
    assert with_logs < 0.5 * without


def test_sums_over_sources_do_not_give_small_cells_away(tmp_path):
    frames = [
        pd.DataFrame({"episode": range(n), "step": 0, "state": ["a"] * (n - rare) + ["b"] * rare})
        for n, rare in ((300, 7), (300, 100))
    ]
    logs = []
    for name, frame in zip(("one", "two"), frames, strict=True):
        columns = {"action": "go", "reward": 0.0, "next_state": "a", "terminated": False, "truncated": True}
        logs.append(cs.open_logs(frame.assign(**columns), source=name))
    found = cs.inspect(logs)
    ceilings = cs.value_ceilings(found.counts, 2, 1.0)
    for smallest, visits in ((None, ["493", "107"]), (11, ["withheld", "withheld"]), (5, ["493", "107"])):
        shown = found if smallest is None else found.without_small_cells(smallest)
        ceilings.save_html(tmp_path / "x.html", inspection=shown)
        text = (tmp_path / "x.html").read_text(encoding="utf-8")
        states = text[text.index('<section id="states">') :]
        cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", states[: states.index("</table>")])]
        assert cells[1::3] == visits


def test_equal_results_give_equal_pages(pages, tmp_path):
    world = cs.load_world("lavacross-easy")
    cs.inspect([world.collect(name, 20_000) for name in ("bad", "random")]).save_html(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (pages / "grid.html").read_bytes()


def test_what_does_not_fit_on_one_page_is_refused(tmp_path):
    world, other = cs.load_world("lavacross-easy"), cs.load_world("walking-robot")
    ceilings = cs.value_ceilings(cs.count(world.collect("random", 2000)), 20, -0.1, support="any")
    inspection = cs.inspect(other.collect(next(iter(other.demonstrators)), 2000))
    with pytest.raises(ArgumentError, match="must be of the same states and actions"):
        ceilings.save_html(tmp_path / "x.html", inspection=inspection)
    with pytest.raises(FileError, match=r"must end in \.html"):
        ceilings.save_html(tmp_path / "x.pdf")
    ceilings.save_html(tmp_path / "x.html")
    assert "What was logged" not in (tmp_path / "x.html").read_text()


@browsing
@pytest.mark.parametrize("name", NAMES)
def test_a_browser_shows_a_page_wide_and_on_a_phone(pages, browser, name):
    address = (pages / f"{name}.html").as_uri()
    for width, mobile in ((1280, False), (390, True)):
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": mobile}
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        browser.open(address)
        assert browser.run("document.documentElement.scrollWidth") <= width
        broken = "Promise.all([...document.images].map(one => one.decode().then(() => 0, () => 1)))"
        assert sum(browser.run(broken)) == 0
        assert browser.run("[...document.images].every(one => one.getBoundingClientRect().width > 250)")
        assert browser.run("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
        assert browser.run("document.title").startswith("What the logs of")
        assert browser.run("document.scripts.length") == 2  # ours
    assert {kind.split(":")[0] for kind in browser.fetched} <= {"file", "data"}
    assert [one for one in browser.fetched if one.startswith("file:")] == [address] * 2
    assert browser.said == []


@browsing
def test_tables_sort_and_assumptions_are_ticked(pages, browser):
    browser.open((pages / "grid-ceilings.html").as_uri())
    column = "[...document.querySelectorAll('#states tbody tr')].map(row => parseFloat(row.cells[2].textContent))"
    before = browser.run(column)
    head = "document.querySelectorAll('#states th')[2]"
    browser.run(f"{head}.click()")
    assert browser.run(column) == sorted(before) != before
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    browser.run(f"{head}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
    assert browser.run(column) == sorted(before, reverse=True)
    assert browser.run("document.getElementById('ticked').textContent") == "0 of 9 ticked"
    browser.run("document.querySelectorAll('.ticks input')[1].click()")
    assert browser.run("document.getElementById('ticked').textContent") == "1 of 9 ticked"
    assert browser.run("localStorage.length + sessionStorage.length") == 0
    assert browser.said == []


@browsing
def test_bins_sort_by_their_order_and_not_by_their_words(pages, browser):
    browser.open((pages / "ward-ceilings.html").as_uri())
    browser.run("document.querySelector('#states th').click()")
    ages = browser.run("[...document.querySelectorAll('#states tbody tr')].map(row => row.cells[0].textContent)")
    assert list(dict.fromkeys(ages)) == ["below 40", "40 to below 65", "65 and above"]
    rows = browser.run("[...document.querySelectorAll('#sensitivity tbody tr')].map(r => r.cells[0].textContent)")
    assert rows == ["2", "inf"]


@browsing
@pytest.mark.parametrize("name", NAMES)
def test_a_printed_page_is_complete(pages, browser, name):
    browser.open((pages / f"{name}.html").as_uri())
    assert browser.run("[...document.querySelectorAll('details')].every(one => !one.open)")
    data = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    assert base64.b64decode(data).startswith(b"%PDF")
    assert browser.run("[...document.querySelectorAll('details')].every(one => one.open)")
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", width=720, height=1000, deviceScaleFactor=1, mobile=False)
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.run("document.documentElement.scrollWidth") <= 720
    assert browser.said == []
