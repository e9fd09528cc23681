"""The page of the field study."""

import csv
import json

import numpy as np
import pytest
from small_field import USUAL

from studies.field import tables
from studies.field.__main__ import main
from studies.field.claims import bound_claims, rarest_outcome
from studies.field.clinic import optimum
from studies.field.materials import Materials
from studies.field.metrics import compared
from studies.field.page import decisions, write_field_page
from studies.field.plan import METHODS, Case


def test_the_page_has_a_figure_a_table_for_each_family_and_what_was_asked(small):
    text = (small.folder / "index.html").read_text()
    for name in ("family-random", "family-problems", "confounding", "losses", "claims", "clinic"):
        assert f'id="table-{name}"' in text
        assert (small.folder / "tables" / f"{name}.csv").exists()
    for name in ("overview", "cases", "worth"):
        assert (small.folder / "figures" / f"{name}.png").stat().st_size > 5_000
    assert text.count("data:image/svg+xml") == 3
    assert "http" not in text.replace("http://www.w3.org", "")
    assert len(tables.targets(small)) == text.count('class="met"') + text.count('class="missed"')
    said = json.loads((small.folder / "summary.json").read_text())
    assert [asked for asked, _, _ in said["targets"]] == [asked for asked, _, _ in tables.targets(small)]
    assert said["tables"]["family-random"]["rows"] == tables.family_table(small, "random").rows


def test_equal_results_give_an_equal_page(small):
    before = (small.folder / "index.html").read_bytes()
    write_field_page(small)
    assert (small.folder / "index.html").read_bytes() == before


def test_a_familys_table_holds_what_was_measured(small):
    with (small.folder / "tables" / "family-random.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == USUAL
    some = compared(small, "random", "posterior")
    assert float(rows["posterior"]["mean"]) == pytest.approx(some.ratio.mean())
    assert float(rows["no-logs"]["mean"]) == pytest.approx(1)


def test_a_decision_names_the_method_with_the_least_regret(small):
    (situation, method, evidence), *_ = decisions(small)
    assert "Nothing can be hidden" in situation
    means = {}
    for name, one in METHODS.items():
        some = [part.ratio for part in tables.by_confounding(small, name, "none")] if one.uses_logs else []
        if some:
            means[name] = np.concatenate(some).mean()
    best = min(means, key=means.get)
    assert METHODS[best].title == method
    assert f"{means[best]:.2f} times" in evidence


def test_bounds_of_a_known_world_hold_and_false_ones_are_noticed(monkeypatch):
    materials = Materials(Case("random", "dense", 9_003, "mixed", "strong", 3_000))
    rows = bound_claims(materials)
    assert len(rows) == 7
    assert all(row["violations"] == 0 for row in rows if row["confidence"] and row["assumed"])
    monkeypatch.setattr(type(materials), "true_gammas", dict.fromkeys(materials.world.demonstrators, 1.0))
    monkeypatch.setattr(type(materials), "reward_max", -5.0)
    with pytest.raises(ValueError, match="reward_max"):
        bound_claims(materials)


def test_the_rarest_outcome_is_that_of_the_table():
    case = Case("random", "stages", 9_004, "good", "none", 2_000)
    materials = Materials(case)
    world, counts, found = materials.world, materials.counts, 1.0
    for s in np.unique(counts.state):
        shares, total = {}, 0.0
        for i, name in enumerate(counts.sources):
            n = counts.n[(counts.source == i) & (counts.state == s)].sum()
            total += n
            for x in np.flatnonzero(world.space.is_admissible[s]):
                for u, chance in enumerate(world.model.noise[s]):
                    key = (world.model.next_state[s, x, u], world.model.reward[s, x, u])
                    shares[key] = shares.get(key, 0.0) + n * chance * world.demonstrators[name][s, u, x]
        found = min(found, min(shares.values()) / total)
    assert rarest_outcome(materials) == pytest.approx(found)


def test_the_most_that_a_stay_can_earn():
    assert optimum(lasts=False) == pytest.approx(1.5)
    best = 0.0
    for plan in range(2**7):  # a drug for each node of the tree of what helped
        total = 0.0
        for right in (0, 1):
            for results in range(8):
                node, chance, helped = 0, 0.5, 0
                for day in range(3):
                    good = (results >> day) & 1
                    p = 0.9 if (plan >> node) & 1 == right else 0.1
                    chance *= p if good else 1 - p
                    helped += good
                    node = 2 * node + 1 + good
                total += chance * helped
        best = max(best, total)
    assert optimum(lasts=True) == pytest.approx(best)


def test_the_program_names_the_families_and_refuses_others(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--families" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--families", "mars", "-o", "nowhere"])
    assert "no family 'mars'" in capsys.readouterr().err
