"""LaLonde's data: what the page about them claims. The data come with the package causaldata (extra `examples`)."""

import functools
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import ContradictionError

MISSING = importlib.util.find_spec("causaldata") is None
pytestmark = pytest.mark.skipif(MISSING, reason="LaLonde's data are in the package causaldata, which is not installed")


@pytest.fixture(scope="module")
def lalonde():
    path = Path(__file__).parents[1] / "examples" / "lalonde.py"
    spec = importlib.util.spec_from_file_location("lalonde", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sources(lalonde):
    return lalonde.load()


@pytest.fixture(scope="module")
def counts_of(lalonde, sources):
    @functools.cache
    def counts_of(reward, state="person", *, survey=True):
        names = ("trial", "survey") if survey else ("trial",)
        return cs.count([lalonde.logs(frame, name, reward, state) for frame, name in zip(sources, names, strict=False)])

    return counts_of


def test_means_are_those_of_the_literature(sources):
    trial, survey = sources
    assert trial.groupby("action").re78.mean().round().tolist() == [4555, 6349]
    assert survey.groupby("action").re78.mean().round().tolist() == [14847, 6349]


@pytest.mark.parametrize("reward", ["re78", "employed"])
def test_the_contradiction_is_found_and_they_are_not_the_same_world(counts_of, reward):
    found = cs.contradictions(counts_of(reward))
    assert [(item.action, round(item.confounding)) for item in found] == [("none", 12)]
    assert "they did not watch the same world" in str(found)


@pytest.mark.parametrize("gamma", [1.0, 2.0, 5.0, 100.0, math.inf])
@pytest.mark.parametrize("state", ["person", "earned_before"])
@pytest.mark.parametrize(("reward", "most"), [("re78", 100_000.0), ("employed", 1.0)])
def test_nothing_is_claimed_against_a_declared_trial(counts_of, reward, most, state, gamma):
    counts = counts_of(reward, state)
    options = {"confounding": {"trial": 1.0, "survey": gamma}, "confidence": 0.95, "support": "any"}
    with pytest.raises(ContradictionError, match="contradict each other on what 'none' does"):
        cs.value_ceilings(counts, 1, most, **options)
    with pytest.raises(ContradictionError, match="contradict each other on what 'none' does"):
        cs.value_floors(counts, 1, 0.0, **options)


def test_masses_above_one_are_no_claim_at_unlimited_confounding(counts_of):
    earnings, employment = (counts_of(reward) for reward in ("re78", "employed"))
    with pytest.raises(ContradictionError, match="whatever their confounding"):
        cs.value_ceilings(earnings, 1, 100_000.0, confidence=0.95)
    with pytest.warns(cs.AssumptionWarning):
        ceilings = cs.value_ceilings(employment, 1, 1.0, confidence=0.95, support="any")
    assert any("did not watch the same world" in caveat for caveat in ceilings.caveats)


@pytest.mark.parametrize("gamma", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("state", ["person", "earned_before"])
@pytest.mark.parametrize(("reward", "most"), [("re78", 100_000.0), ("employed", 1.0)])
def test_the_trials_own_values_lie_inside_every_interval_that_it_claims(counts_of, sources, reward, most, state, gamma):
    counts = counts_of(reward, state, survey=False)
    options = {"confounding": gamma, "confidence": 0.95, "support": "any"}
    ceilings, floors = cs.value_ceilings(counts, 1, most, **options), cs.value_floors(counts, 1, 0.0, **options)
    assert not ceilings.caveats
    means = sources[0].groupby([state, "action"])[reward].mean()
    for s, label in enumerate(counts.space.states):
        for x, action in enumerate(counts.space.actions):
            assert floors.q_values[0, s, x] <= means[label, action] <= ceilings.q_values[0, s, x]


def test_earlier_earnings_tie_the_survey_and_nothing_ties_the_trial(lalonde, sources):
    columns = {"reward": "re78", "state": "person", "draws": 39}
    trial = cs.confounding_of(sources[0], lalonde.COVARIATES, source="trial", **columns)
    assert sum(item.distinguishable for item in trial) <= 1
    survey = {item.column: item for item in cs.confounding_of(sources[1], ["re75", "age"], source="survey", **columns)}
    assert survey["re75"].distinguishable
    assert 3 < survey["re75"].confounding < 5
    assert survey["age"].confounding < 1.5
    assert np.isfinite(survey["re75"].by_chance)
