"""Nothing that is written with small cells hidden holds a small count."""

import csv
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

import causal_shaping as cs
from causal_shaping.cli import main
from causal_shaping.diagnose.small_cells import SmallCells

SMALLEST = 11
COUNTS = {
    "episodes", "steps", "rows", "terminated", "truncated", "unknown", "visits", "compared", "total_episodes",
    "reasons", "first_visits", "second_visits",
}  # fmt: skip
"""What counts of rows, visits and episodes are called in tables, on pages and in JSON."""


def ward(seed, source, patients, odd):
    """Patients of common and of rare stages, some of whom die, leave, or have a bad row; nine pay `odd`."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        stage = rng.choice(["mild", "severe", "rare", "rarer"], p=(0.6, 0.35, 0.04, 0.01))
        drugs = rng.choice(["drug", "none"], int(rng.integers(1, 4)))
        rows += [(patient, day, stage, drug, float(rng.random() < 0.05)) for day, drug in enumerate(drugs)]
    rows += [(patients + i, 0, "odd", "drug", odd) for i in range(9 if patients > 9 else 0)]
    frame = pd.DataFrame(rows, columns=["episode", "step", "state", "action", "reward"])
    last = ~frame.episode.duplicated(keep="last")
    ends = rng.choice(["died", "left", "unknown"], len(frame), p=(0.03, 0.9, 0.07))
    frame["terminated"] = last & ((ends == "died") | (frame.state == "odd"))
    frame["truncated"] = last & (ends == "left") & ~frame.terminated
    frame.loc[frame.episode.isin(rng.choice(patients, 3)), "reward"] = np.nan
    return cs.open_logs(frame, source=source)


def counted(value, name=""):
    """Yield every number of plain values that is a count, by the name that it or what holds it has."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from counted(held, name if name in COUNTS else key)
    elif isinstance(value, list):
        for held in value:
            yield from counted(held, name if not isinstance(held, dict) else "")
    elif name in COUNTS and isinstance(value, int | float):
        yield value


def cells_of(page):
    """Yield the head and the text of every cell of the tables of a page."""
    for table in re.findall(r"<table.*?</table>", page, flags=re.DOTALL):
        heads = [re.sub("<.*?>", "", head).strip() for head in re.findall(r"<th.*?</th>", table, flags=re.DOTALL)]
        texts = [re.sub("<.*?>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", table, flags=re.DOTALL)]
        for i, text in enumerate(texts):
            yield heads[i % len(heads)], text


def written(found, folder):
    """Yield every count in the JSON, the table, the summary and the pages of an inspection."""
    yield from counted(json.loads(found.to_json()))
    for part in (found.coverage, found.contradictions, found.persistence):
        yield from counted({"part": json.loads(part.to_json())})
    for table in (found, found.coverage, found.contradictions, found.persistence):
        frame = table.to_pandas()
        for name in COUNTS & set(frame):
            yield from frame[name].dropna().tolist()
    for line in found.summary().split("\n\n")[0].splitlines()[3:]:
        for text in re.findall(r"(?<=\s)[\d,]+(?=\s)", line.partition("(")[0]):
            yield int(text.replace(",", ""))
    for n in re.findall(r"([\d,]+) (?:of [\d,]+ )?(?:episodes|rows)\b", found.summary()):
        yield int(n.replace(",", ""))
    found.save_html(folder / "page.html")
    cs.value_ceilings(found.counts, 3, 1.0).save_html(folder / "ceilings.html", inspection=found)
    for name in ("page", "ceilings"):
        page = (folder / f"{name}.html").read_text()
        for head, text in cells_of(page):
            if head in COUNTS and re.fullmatch(r"[\d,]+", text):
                yield int(text.replace(",", ""))
        for n in re.findall(r"([\d,]+) (?:of [\d,]+ )?(?:episodes|rows)\b", page):
            yield int(n.replace(",", ""))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_is_written_holds_a_small_count(tmp_path, seed):
    wards = (("three", 200, 0.0), ("seven", 90 + 40 * seed, 1.0), ("nine", 8, 0.0))
    logs = [ward(seed + 100 * i, *each) for i, each in enumerate(wards)]
    found = cs.inspect(logs, skip_bad_episodes=True)
    assert any(min(item.visits) < SMALLEST for item in found.contradictions)
    assert min(found.persistence.episodes.values()) < SMALLEST
    assert [n for n in written(found, tmp_path) if SmallCells(SMALLEST).hides(n)], "the logs hold small counts"
    shown = [*written(found.without_small_cells(SMALLEST), tmp_path)]
    assert len(shown) > 20
    assert not [n for n in shown if SmallCells(SMALLEST).hides(n)]


def test_neither_does_what_the_commands_write(tmp_path, monkeypatch, capsys):
    rows = "episode,step,state,action,reward,terminated\n"
    rows += "".join(f"{i},0,{'rare' if i < 7 else 'common'},{'xy'[i % 2]},1,{int(i < 4)}\n" for i in range(300))
    (tmp_path / "ward.csv").write_text(rows)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["causal-shaping", "inspect", str(tmp_path / "ward.csv"), *map(str, options)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return capsys.readouterr().out

    for hidden, options in ((False, ()), (True, ("--smallest-cell", SMALLEST))):
        table, page = tmp_path / "x.csv", tmp_path / "x.html"
        found = json.loads(run(*options, "--json", "-o", table, "--html", page))
        with table.open() as file:
            visits = [float(row["visits"]) for row in csv.DictReader(file) if row["visits"]]
        on_page = [float(text) for head, text in cells_of(page.read_text()) if head in COUNTS and text.isdigit()]
        small = [n for n in (*counted(found), *visits, *on_page) if SmallCells(SMALLEST).hides(n)]
        assert bool(small) != hidden
        assert ("fewer than 11" in run(*options)) == hidden


@pytest.mark.filterwarnings("ignore")
def test_small_cells_are_hidden_once():
    hidden = cs.inspect(ward(0, "a", 60, -3.0), skip_bad_episodes=True).without_small_cells(SMALLEST)
    assert hidden.without_small_cells(SMALLEST) is hidden
    with pytest.raises(cs.ArgumentError, match=r"hides counts below 11 already.*the inspection that shows all"):
        hidden.without_small_cells(5)
