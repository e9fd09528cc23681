"""Contradictions between sources: found where there are some, and hardly ever elsewhere."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import chdtrc
from scipy.stats import chi2, fisher_exact

import causal_shaping as cs
from causal_shaping.diagnose.contradictions import _p_value, reconciling
from causal_shaping.errors import ArgumentError


def collected(name, steps=100_000, seed=0, only=None):
    world = cs.load_world(name)
    return cs.count([world.collect(d, steps, seed) for d in only or world.demonstrators])


def test_the_robots_demonstrators_contradict_each_other_when_unstable():
    found = cs.contradictions(collected("walking-robot", steps=10_000))
    assert found
    assert all(item.state[1] == 0 for item in found)  # stable steps do not depend on the noise
    assert {(item.first_share, item.second_share) for item in found} == {(1.0, 0.0)}
    assert {(0, 0), (1, 0)} <= {item.state for item in found}


def test_bad_and_random_contradict_each_other_where_bad_waits_for_calm():
    found = cs.contradictions(collected("lavacross-easy", only=["bad", "random"]))
    assert {(item.state, item.action) for item in found} == {((x, 1), "right") for x in (1, 2, 3, 4)}
    text = str(next(item for item in found if item.state == (3, 1)))
    assert text.startswith("bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 9")
    assert "At least one of them is confounded there; a confounding of" in text


def test_counts_that_keep_steps_apart_are_compared_step_by_step():
    """A world that changes: `go` leads to b at first and to c later; the sources stood in a at different times."""
    times = {"p": (900, 100), "q": (100, 900)}

    def counts(swapped):
        columns = {name: [] for name in ("source", "step", "state", "action", "next_state", "terminated", "n")}
        for source, (early, late) in enumerate(times.values()):
            for step, n in ((0, early), (1, late)):
                after = 1 + step if not (swapped and source == 1) else 2 - step
                for name, value in zip(columns, (source, step, 0, 0, after, False, n), strict=True):
                    columns[name].append(value)
        paid = {name: [0.0] * 4 for name in ("reward_sum", "reward_min", "reward_max")}
        space = cs.Space(["a", "b", "c"], ["go"])
        arrays = {name: np.array(values) for name, values in (columns | paid).items()}
        return cs.Counts.combined(space, list(times), [True, True], arrays)

    assert list(cs.contradictions(counts(swapped=False))) == []
    found = cs.contradictions(counts(swapped=True))
    assert [item.step for item in sorted(found, key=lambda item: item.step)] == [0, 1]
    assert "does in a at step 0: it leads to b in 100% against 0%" in str(min(found, key=lambda item: item.step))


@pytest.mark.parametrize("name", ["lavacross-easy", "windy-empty"])
def test_unconfounded_sources_are_rarely_accused(name):
    """At level 5%, no more than 10 of 100 trials name anything: two policies that are blind to the wind."""
    world = cs.load_world(name)
    states, actions, noises = world.model.next_state.shape
    uniform = np.full((states, noises, actions), 1 / actions)
    tilted = np.broadcast_to([0.05, 0.35, 0.05, 0.5, 0.05], uniform.shape)
    accused = 0
    for seed in range(100):
        pair = [world.collect(uniform, 3000, seed, source="a"), world.collect(tilted, 3000, seed, source="b")]
        accused += bool(cs.contradictions(cs.count(pair), seed=seed))
    assert accused <= 10


def without_next_state(logs, source):
    """The same logs as if the file had no next states: the last outcome of an episode is known only if it ended."""
    last = np.append(logs.step[1:] == 0, True)
    columns = {name: getattr(logs, name) for name in cs.Logs.COLUMNS}
    columns["next_state"] = np.where(last, -1, logs.next_state)
    return cs.Logs(logs.space, source, **columns)


def test_an_outcome_that_is_known_only_if_it_was_an_end_is_no_contradiction():
    """One world, in which `go` ends in half of all cases; one source is cut after each step, without next states."""
    space = cs.Space(["a", "end"], ["go"])
    n = 1000
    ends = np.arange(n) % 2 == 0
    zeros = np.zeros(n, dtype=int)
    cut = cs.Logs(space, "cut", range(n), zeros, zeros, zeros, zeros, np.where(ends, 1, -1), ends, ~ends)
    # The other is never cut: it goes on once and then ends, again and again.
    episode, step = np.arange(n) // 2, np.arange(n) % 2
    whole = cs.Logs(space, "whole", episode, step, zeros, zeros, zeros, step, step == 1, zeros == 1)
    assert list(cs.contradictions(cs.count([cut, whole]))) == []


@pytest.mark.parametrize("horizon", [3, 20])
def test_missing_next_states_are_no_contradiction(horizon):
    """Neither where an end is not told from another, nor where an outcome is known only if it was an end."""
    world = cs.load_world("lavacross-easy", horizon=horizon)
    blind = np.broadcast_to([0.05, 0.05, 0.05, 0.8, 0.05], world.demonstrators["random"].shape)
    accused = 0
    for seed in range(20):
        whole = world.collect("random", 20_000, seed)
        other = world.collect(blind, 20_000, seed, source="other")
        accused += bool(cs.contradictions(cs.count([whole, without_next_state(other, "other")])))
        both = [without_next_state(whole, "a"), without_next_state(other, "b")]
        accused += bool(cs.contradictions(cs.count(both)))
    assert accused <= 4  # of 40 at level 5%


def test_outcomes_that_differ_in_the_reward_alone_are_named_by_it():
    space = cs.Space(["a", "b"], ["go"])
    logs = []
    for source, share in (("p", 0.9), ("q", 0.2)):
        n = 1000
        reward = np.where(np.arange(n) < share * n, 0.1, 0.3)
        flags = {"terminated": [False] * n, "truncated": [True] * n}
        logs.append(cs.Logs(space, source, range(n), [0] * n, [0] * n, [0] * n, reward, [1] * n, **flags))
    (found,) = cs.contradictions(cs.count(logs))
    assert "it leads to b with reward 0.1 in 90% against 20%" in str(found)
    assert found.confounding is None
    assert "did not watch the same world" in str(found)


def test_huge_counts_are_compared_all_the_same():
    table = np.array([[4e9, 1e9], [3.9e9, 1.1e9]])
    assert _p_value(table, np.random.default_rng(0), deals=1000) < 1e-12


tables = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(any), min_size=2, max_size=2).map(
    lambda columns: np.array(columns, dtype=float).T
)


@given(tables.filter(lambda t: (t.sum(axis=1) > 0).all()))
@settings(max_examples=60)
def test_small_tables_get_an_exact_p_value(table):
    """Against enumeration of all deals of the outcomes to the two sources."""
    totals, first = table.sum(axis=0).astype(int), int(table[0].sum())
    share = first / totals.sum()

    def statistic(row):
        return sum((r - t * share) ** 2 / (t * share * (1 - share)) for r, t in zip(row, totals, strict=True))

    extreme = whole = 0
    for deal in itertools.product(*(range(t + 1) for t in totals)):
        if sum(deal) == first:
            ways = math.prod(math.comb(t, d) for t, d in zip(totals, deal, strict=True))
            whole += ways
            extreme += ways * (statistic(deal) >= statistic(table[0]) - 1e-9)
    exact = extreme / whole
    found = _p_value(table, np.random.default_rng(0), deals=20_000)
    if found <= 0.05 or exact <= 0.01:  # else the approximation is reported, which cannot lead to a rejection
        assert found == pytest.approx(exact, rel=0.35, abs=0.002)


@given(st.floats(0, 300), st.integers(1, 40))
@settings(max_examples=60)
def test_tail_probabilities_are_those_of_the_chi_squared_distribution(statistic, freedom):
    assert chdtrc(freedom, statistic) == pytest.approx(chi2.sf(statistic, freedom), rel=1e-9, abs=1e-300)


def test_a_strong_difference_gets_a_tiny_p_value():
    table = np.array([[400.0, 5.0], [10.0, 300.0]])
    assert _p_value(table, np.random.default_rng(0), deals=1000) < 1e-12
    assert fisher_exact(table).pvalue < 1e-12


# The smallest reconciling Gamma ------------------------------------------------------------------------------------


def smallest_gamma(model, beta, s, x):
    """The smallest Gamma of the marginal sensitivity model that a demonstrator satisfies at (s, x)."""
    outcome = model.next_state[s, x]
    p_x = (model.noise[s] * beta[s, :, x]).sum()
    odds = p_x / (1 - p_x)
    worst = 1.0
    for o in np.unique(outcome[model.noise[s] > 0]):
        weight = model.noise[s] * (outcome == o)
        p = (weight * beta[s, :, x]).sum() / weight.sum()
        if p in (0, 1):
            return math.inf
        worst = max(worst, odds / (p / (1 - p)), (p / (1 - p)) / odds)
    return worst


def test_the_reconciling_gamma_never_exceeds_the_true_one():
    """Two demonstrators of one world agree at the larger of their true Gammas, so no larger one is ever needed."""
    world = cs.load_world("lavacross-easy")
    counts = collected("lavacross-easy", only=["bad", "random"])
    for item in cs.contradictions(counts):
        s, x = world.space.state_position(item.state), world.space.action_position(item.action)
        truth = max(smallest_gamma(world.model, world.demonstrators[name], s, x) for name in ("bad", "random"))
        assert 1 < item.confounding <= truth + 1e-9


def test_reconciling_at_the_ends_of_the_scale():
    equal = np.array([[500.0, 500.0], [500.0, 500.0]])
    assert reconciling(equal, (1000.0, 1000.0)) == 1.0
    different = np.array([[900.0, 100.0], [100.0, 900.0]])
    assert reconciling(different, (1000.0, 1000.0)) is None  # x is always taken: nothing is left to hide
    rarely = reconciling(different, (1e5, 1e5))
    often = reconciling(different, (2e3, 2e3))
    assert 1 < rarely < often
    # Never the same outcome, in 10^7 steps: no finite Gamma within reach, but Manski's bounds allow it.
    apart = np.array([[1e7, 0.0], [0.0, 1e7]])
    assert reconciling(apart, (2.2e7, 2.2e7)) == math.inf


def test_population_counts_are_refused():
    world = cs.load_world("lavacross-easy")
    masses = world.model.observe(world.demonstrators["good"], "good")
    for ask in (cs.contradictions, cs.unseen_mass):
        with pytest.raises(ArgumentError, match=r"[Pp]opulation"):
            ask(masses)


def test_what_could_not_be_compared_is_counted():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 3000) for name in ("good", "random")]
    full = cs.count(logs)
    compared, both = cs.contradictions(full).compared, cs.contradictions(full).shared
    assert 0 < compared == both
    unknown = [replace(one, next_state=np.where(one.truncated, -1, one.next_state)) for one in logs]
    found = cs.contradictions(cs.count(unknown, check=False))
    assert found.shared == both
    assert 0 < found.compared < both
    assert f"{found.compared} of {both} state-actions that two sources took were compared" in found.summary()
