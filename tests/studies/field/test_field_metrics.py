"""Measures of the field study, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from causal_shaping.learners.worth import saved_share
from studies.field.tables import (
    Compared,
    claims_held,
    compared,
    harm,
    worth_scores,
)


def row(name, case, regrets, place="w-0", **more):
    return [
        {
            "family": "random", "case": case, "place": place, "name": name, "seed": seed, "steps": 400,
            "regret": regret, "confounding": "none", **more,
        }
        for seed, regret in enumerate(regrets)
    ]  # fmt: skip


@pytest.fixture
def results():
    runs = [
        *row("no-logs", "w-0-no-logs", [100.0, 100.0]),
        *row("no-logs", "w-1-no-logs", [90.0, 110.0], place="w-1"),
        *row("posterior", "w-0-a", [40.0, 60.0]),
        *row("posterior", "w-0-b", [150.0, 150.0]),
        *row("posterior", "w-1-a", [0.0, 300.0], place="w-1", confounding="hostile"),
    ]
    worths = [{"family": "random", "case": case, "predicted": said} for case, said in (("w-0-a", 0.4), ("w-0-b", -0.1))]
    return SimpleNamespace(runs=runs, worths=worths, claims=[])


def test_regret_is_compared_with_that_without_logs_in_the_same_world(results):
    some = compared(results, "random", "posterior")
    assert [case["case"] for case in some.cases] == ["w-0-a", "w-0-b", "w-1-a"]
    assert some.ratio == pytest.approx([0.5, 1.5, 1.5])
    assert compared(results, "random", "no-logs").ratio == pytest.approx([1, 1])
    assert [one["case"] for one in some.at(["hostile"]).cases] == ["w-1-a"]
    assert compared(results, "random", "paper") is None


def test_harm_counts_means_and_intervals(results):
    found = harm(compared(results, "random", "posterior"))
    assert found == (2, 1)  # the third case is worse on average, but its interval goes down to 0


def test_an_interval_is_over_worlds_and_seeds():
    rng = np.random.default_rng(0)
    regret, baseline = rng.gamma(4, 20, (5, 40)), rng.gamma(4, 20, (5, 40))
    some = Compared([{}] * 40, regret, baseline)
    middle, low, high = some.interval()
    by_hand = (regret / baseline.mean(axis=0)).mean()
    assert middle == pytest.approx(by_hand)
    assert low < middle < high
    _, narrow_low, narrow_high = some.interval(worlds=False)
    assert narrow_high - narrow_low < high - low
    assert some.worst_decile == pytest.approx(np.quantile(some.ratio, 0.9))


def test_claims_are_counted_in_the_families_with_learners():
    def claim(name, violations, confidence=0.95, family="random"):
        return {"claim": name, "violations": violations, "family": family, "confidence": confidence, "distance": 1.0}

    rows = [claim("a", 0)] * 18 + [claim("a", 4)] * 2 + [claim("b", 1, confidence=None), claim("d", 0)]
    rows += [claim("a", 1, family="clinic")]
    a, b, d = claims_held(SimpleNamespace(claims=rows))
    assert (a.cases, a.false, d.false) == (20, 2, 0)
    assert a.chance == pytest.approx(binom.sf(1, 20, 0.05))
    assert (b.chance, d.chance) == (1.0, 1.0)


def test_worth_is_compared_with_what_was_saved(results):
    predicted, realised = worth_scores(results)
    assert predicted.tolist() == [0.4, -0.1]
    assert realised.tolist() == [saved_share(200, 100), saved_share(200, 300)]
