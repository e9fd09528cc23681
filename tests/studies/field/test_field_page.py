"""The page of the field study, and the claims that it reports."""

import json

import pytest

from studies.field import tables
from studies.field.__main__ import write_field_page
from studies.field.claims import bound_claims
from studies.field.clinic import optimum
from studies.field.methods import METHODS, Materials
from studies.field.plan import Case
from studies.field.tables import compared

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


def test_the_page_has_a_table_for_each_family_and_what_was_asked(small):
    text, said = (small.folder / "index.html").read_text(), json.loads((small.folder / "summary.json").read_text())
    for name in ("family-random", "family-problems", "confounding", "claims", "clinic"):
        assert f'id="table-{name}"' in text
        assert (small.folder / "tables" / f"{name}.csv").exists()
        assert said["tables"][name]["rows"]
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "&lt;b&gt;not" in text
    assert len(tables.targets(small)) == text.count('class="met"') + text.count('class="missed"')
    assert [asked for asked, _, _ in said["targets"]] == [asked for asked, _, _ in tables.targets(small)]


def test_equal_results_give_an_equal_page(small):
    before = (small.folder / "index.html").read_bytes()
    write_field_page(small, ["mars: <b>not</b> installed"])
    assert (small.folder / "index.html").read_bytes() == before


def test_a_familys_table_holds_what_was_measured(small):
    rows = {row[0]: row for row in tables.family_table(small, "random").rows}
    assert len(rows) == len(METHODS)
    mean = compared(small, "random", "posterior").ratio.mean()
    assert rows["Posterior sampling with logs (ours)"][1].startswith(f"{mean:.2f} [")
    assert rows["Posterior sampling, no logs (ours)"][1].startswith("1.00 [")


def test_a_decision_names_the_method_with_the_least_regret(small):
    (situation, method, evidence), *_ = tables.decisions(small)
    assert "Nothing can be hidden" in situation
    usable = [name for name, one in METHODS.items() if one.uses_logs]
    means = {name: tables.ratios_at(small, name, "none").mean() for name in usable}
    best = min(means, key=means.get)
    assert METHODS[best].title == method
    assert f"{means[best]:.2f} times" in evidence


def test_bounds_of_a_known_world_hold_and_false_ones_are_noticed(monkeypatch):
    materials = Materials(Case("random", "dense", 9_003, "mixed", "strong", 3_000))
    rows = bound_claims(materials)
    assert len(rows) == 5
    assert all(row["violations"] == 0 for row in rows if row["confidence"])
    monkeypatch.setattr(type(materials), "reward_max", -5.0)
    with pytest.raises(ValueError, match="reward_max"):
        bound_claims(materials)


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
