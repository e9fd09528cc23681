"""Helpers of the bounds, beside plain computations: what whole bounds hardly show."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from handmade import counts_of_entries, one_step_logs
from scipy.special import gammaln
from scipy.stats import binom, hypergeom

import causal_shaping as cs
from causal_shaping.bounds.agreement import _conflict
from causal_shaping.bounds.masses import Masses
from causal_shaping.bounds.solution import best_of
from causal_shaping.diagnose._homogeneity import _log_binomial, _log_factorial, _one_by_one, _tail


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
@pytest.mark.parametrize(("confidence", "word"), [(None, "impossible"), (0.95, "rare")])
def test_what_never_followed_is_impossible_or_with_confidence_rare(confidence, word):
    space = cs.Space(["ill", "well"], ["wait", "treat"])
    counts = cs.count(one_step_logs(space, [0.0, 0.25, 0.5, 0.75], "one", action=[1, 1, 1, 0], ended=False))
    found = cs.value_ceilings(counts, 2, 1.0, confounding={"one": 2.0}, confidence=confidence)
    assert (
        f"one: what never followed an action that it took is {word} after that action (overlap)." in found.assumptions
    )


@pytest.mark.parametrize(("good", "bad", "drawn"), [(5, 7, 4), (30, 10, 25), (3, 200, 50), (400, 900, 300), (8, 2, 9)])
def test_the_tail_of_a_hypergeometric_is_hardly_above_the_exact_one_and_never_below(good, bad, drawn):
    for least in range(drawn + 2):
        exact, found = hypergeom.sf(least - 1, good + bad, good, drawn), _tail(float(least), good, bad, drawn)
        assert exact * (1 - 1e-11) <= found <= exact * (1 + 3e-6)


def test_factorials_beyond_the_table_are_those_of_the_gamma_function():
    for k in (0.0, 1.0, 63.0, 64.0, 65.0, 80.0, 1e3, 1e6, 1e12):
        assert _log_factorial(k) == pytest.approx(gammaln(k + 1), rel=3e-15, abs=1e-12)


@pytest.mark.parametrize(("fewer", "marked", "size"), [(5, 6, 10), (2, 3, 4), (9, 20, 40)])
def test_drawing_one_by_one_is_drawing_without_replacement(fewer, marked, size):
    rng, draws = np.random.default_rng(0), 4_000
    found = np.bincount([int(_one_by_one(fewer, marked, size, rng)) for _ in range(draws)], minlength=fewer + 1)
    expected = hypergeom.pmf(np.arange(fewer + 1), size, marked, fewer)
    errors = np.sqrt(expected * (1 - expected) / draws) + 1e-12
    assert (np.abs(found / draws - expected) < 4 * errors).all()


@pytest.mark.parametrize(("low", "warns"), [(-0.5, True), (0.0, False)])
def test_the_first_steps_ceiling_warns_of_rewards_of_both_signs_however_small(low, warns):
    model = cs.TabularCMDP([[[1, 1]], [[1, 1]]], [[[low, 0.25]], [[0.0, 0.0]]], [[0.5, 0.5]] * 2, [False, True], [1, 0])
    counts = model.observe(np.ones((2, 2, 1)), source="a")
    found = cs.value_ceilings(counts, 3, 0.25, support="any")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found.potential(step_indexed=False)
    assert any("Rewards have both signs" in str(one.message) for one in caught) == warns


def test_sources_that_share_no_action_are_not_compared():
    space = cs.Space(["s"], ["x", "y"])
    found = cs.contradictions(
        counts_of_entries(space, [9, 9], source=[0, 1], action=[0, 1], next_state=-1, sources=["a", "b"])
    )
    assert (len(found), found.compared) == (0, 0)


def test_binomial_chances_are_those_of_scipy():
    for k, n, p in ((0.0, 5.0, 0.3), (3.0, 7.0, 0.9), (40.0, 200.0, 0.2), (900.0, 1e6, 1e-3)):
        assert _log_binomial(k, n, p) == pytest.approx(binom.logpmf(k, n, p), rel=1e-9)


@pytest.mark.filterwarnings("ignore:Only 'd'")
def test_narrow_bins_of_rewards_miss_their_edge_as_wide_ones_do():
    """Rewards in tenths: all that is proven with confidence is a tenth, too."""
    found = []
    for unit in (1.0, 0.1):
        space = cs.Space(["a"], ["x"], reward_bins=cs.Bins(edges=(0.0, 2 * unit, 5 * unit)))
        paid = unit * np.array([0.2, 4.0])
        counts = counts_of_entries(space, [600, 400], paid, next_state=0, terminated=False)
        found.append(cs.value_ceilings(counts, 1, 5 * unit, confidence=0.9, support="any").values[0, 0])
    assert found[1] == pytest.approx(0.1 * found[0])
    assert found[0] < 0.6 * 2 + 0.4 * 5  # the means of bins tell more than their edges


@pytest.mark.parametrize("actions", [8, 9])  # up to 8 are compared action by action
def test_the_best_action_is_one_that_exists(actions):
    q_values = np.random.default_rng(actions).normal(size=(3, 50, actions))
    q_values[q_values < 0.5] = np.nan
    for found, row in zip(best_of(q_values).ravel(), q_values.reshape(-1, actions), strict=True):
        there = [value for value in row if not np.isnan(value)]
        assert found == max(there) if there else np.isnan(found)


def test_a_conflict_is_what_the_intervals_of_its_cell_miss():
    """Too much is proven, a lower limit is above an upper one, or all outcomes and the rest are too little."""
    lower, upper = np.array([0.9, 0.4, 0.5, 0, 0, 0]), np.array([1, 1, 0.3, 1, 0.2, 0.1])
    proven, nothing = lower.reshape(3, 2).sum(axis=1), np.zeros(3)
    scaled = lower / np.maximum(proven, 1).repeat(2)
    masses = Masses(lower=scaled, upper=upper, unseen=np.full(3, 0.1), deficit=nothing, proven=proven)
    cell_of = np.arange(6) // 2
    table = SimpleNamespace(cell=np.arange(3), cell_of=cell_of, sum_by_cell=lambda values: np.bincount(cell_of, values))
    assert _conflict(table, masses) == pytest.approx([0.3, 0.2, 0.6])
