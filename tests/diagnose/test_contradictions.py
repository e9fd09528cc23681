"""Contradictions between sources: found where there are some, and hardly ever elsewhere."""

import itertools
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.bounds.agreement import cell_parts, excess_masses
from causal_shaping.bounds.limits import FixedTrials
from causal_shaping.diagnose import _compare
from causal_shaping.diagnose._compare import Tables, smallest_confounding
from causal_shaping.diagnose._homogeneity import Pairs, Samples, permutation_p_values
from causal_shaping.errors import ArgumentError
from studies.docs.tables import counted


def p_value(table, deals, enough=0.0, seed=0, largest=1.0):
    """The p-value of one 2 x k table."""
    first, second = (np.flatnonzero(row) for row in table)
    samples = Samples(np.concatenate([first, second]), np.concatenate([table[0][first], table[1][second]]))
    edges = np.array([[0], [len(first)], [len(first)], [len(first) + len(second)]])
    return permutation_p_values(samples, Pairs(*edges), np.random.default_rng(seed), deals, enough, largest)[0]


def reconciling(table, visits):
    """The smallest confounding of one table; None if there is none."""
    columns = np.zeros(table.shape[1], dtype=np.int64)
    tables = Tables(np.array([0]), columns, columns, table, np.array(visits)[:, None])
    (gamma,) = smallest_confounding(tables)
    return None if np.isnan(gamma) else gamma


def collected(name, steps=100_000, seed=0, only=None):
    world = cs.load_world(name)
    return cs.count([world.collect(d, steps, seed) for d in only or world.demonstrators])


def test_bad_and_random_contradict_each_other_where_bad_waits_for_calm():
    found = cs.contradictions(collected("lavacross-easy", only=["bad", "random"]))
    assert {(item.state, item.action) for item in found} == {((x, 1), "right") for x in (1, 2, 3, 4)}
    text = str(next(item for item in found if item.state == (3, 1)))
    assert text.startswith("bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 9")
    assert "At least one of them is confounded there (it takes a confounding of at least" in text
    assert "or they did not watch the same world, or a hidden cause lasts over the episode." in text


def test_counts_that_keep_steps_apart_are_compared_step_by_step():
    """A world that changes: `go` leads to b at first and to c later; the sources stood in a at different times."""
    times = {"p": (900, 100), "q": (100, 900)}

    def counts(swapped):
        rows = [(source, 0, 0, 1 + h, 0.0, n) for source, shares in times.items() for h, n in enumerate(shares)]
        if swapped:
            rows[2:] = [(*row[:3], 3 - row[3], *row[4:]) for row in rows[2:]]
        return made_up(rows, actions=["go"], step=np.array([0, 1, 0, 1]))

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
        accused += bool(cs.contradictions(counted(pair), seed=seed))
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
        accused += bool(cs.contradictions(counted([whole, without_next_state(other, "other")])))
        both = [without_next_state(whole, "a"), without_next_state(other, "b")]
        accused += bool(cs.contradictions(counted(both)))
    assert accused <= 4  # of 40 at level 5%


def test_outcomes_that_differ_in_the_reward_alone_are_named_by_it():
    (found,) = cs.contradictions(made_up(REWARDED, actions=["go"]))
    assert "it leads to b with reward 0.1 in 90% against 20%" in str(found)
    assert found.confounding is None
    assert "did not watch the same world" in str(found)


def exact_p_value(table):
    """By enumeration of all deals of the outcomes to the two sources."""
    totals, first = table.sum(axis=0).astype(int), int(table[0].sum())
    share = first / totals.sum()

    def statistic(row):
        return sum((r - t * share) ** 2 / (t * share * (1 - share)) for r, t in zip(row, totals, strict=True))

    least = statistic(table[0]) - 1e-9
    extreme = whole = 0
    for deal in itertools.product(*(range(t + 1) for t in totals[:-1])):
        rest = first - sum(deal)
        if 0 <= rest <= totals[-1]:
            ways = math.prod(math.comb(t, d) for t, d in zip(totals, (*deal, rest), strict=True))
            whole += ways
            extreme += ways * (statistic((*deal, rest)) >= least)
    return extreme / whole


tables = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(any), min_size=2, max_size=2).map(
    lambda columns: np.array(columns, dtype=float).T
)


@given(tables.filter(lambda t: (t.sum(axis=1) > 0).all()))
@fewer(60)
def test_small_tables_get_an_exact_p_value(table):
    """Two outcomes: no deals are needed."""
    assert p_value(table, deals=20_000) == pytest.approx(exact_p_value(table), rel=1e-5)


@pytest.mark.parametrize(
    "table",
    [
        [[10, 2, 0], [3, 4, 9]],  # 4e-4
        [[20, 1, 0], [3, 4, 19]],  # 1e-9: never reached by dealing
        [[15, 0, 1, 0], [2, 4, 9, 6]],  # 3e-7
        [[5, 0, 0], [0, 20, 20]],  # 8e-7, with the chi-squared approximation at 2e-10
        [[1, 0, 0], [0, 30, 30]],  # 1 / 61, at a statistic of 61
        [[4, 3, 5], [6, 7, 4]],
    ],
)
def test_small_p_values_are_those_of_the_permutation_test(table):
    table = np.array(table, dtype=float)
    exact = exact_p_value(table)
    found = [p_value(table, deals=10**9, seed=seed) for seed in range(40)]
    # An estimate with three standard errors on top, or the share of twenty in as many deals as that took.
    assert 0.85 * exact <= np.mean(found) <= 1.7 * exact
    assert np.mean(np.array(found) < 0.8 * exact) <= (0.2 if exact > 0.02 else 0)
    assert p_value(table, deals=10**9) == p_value(table, deals=10**9)
    assert p_value(table[::-1], deals=10**9) == pytest.approx(np.mean(found), rel=0.6)


def many_p_values(seed, laws, sizes, number, largest):
    """P-values of tables of two samples each, of laws and sizes that are drawn for each."""
    rng = np.random.default_rng(seed)
    outcome, n, edges = [], [], [0]
    for _ in range(number):
        for law, size in zip(laws(rng), sizes(rng), strict=True):
            row = rng.multinomial(size, law)
            outcome += np.flatnonzero(row).tolist()
            n += row[row > 0].tolist()
            edges.append(len(n))
    begin, end = np.array(edges[:-1]), np.array(edges[1:])
    pairs = Pairs(begin[::2], end[::2], begin[1::2], end[1::2])
    samples = Samples(np.array(outcome), np.array(n, dtype=float))
    return permutation_p_values(samples, pairs, rng, 10**9, 1e-12, largest)


@pytest.mark.parametrize("largest", [1.0, 1e-9])  # the second gives up where a p-value is of no interest
def test_p_values_of_skewed_tables_keep_their_level(largest):
    """3,000 tables of one law each, with rare outcomes and sources of very different sizes."""
    found = many_p_values(
        *(0, lambda rng: [rng.dirichlet(np.full(6, 0.3))] * 2),
        *(lambda rng: (rng.integers(1, 15), rng.integers(20, 400)), 3000, largest),
    )
    for level in (0.05, 0.01, 0.001):
        assert (found <= level).sum() <= 3000 * level + 3 * math.sqrt(3000 * level)
    if largest == 1:
        assert (found <= 0.05).sum() > 30  # few columns make coarse p-values


def test_p_values_of_interest_are_the_same_if_the_others_are_given_up():
    tables = (7, lambda rng: rng.dirichlet(np.ones(5), 2), lambda rng: rng.integers(20, 120, 2), 400)
    full, short = many_p_values(*tables, 1.0), many_p_values(*tables, 1e-9)
    assert 20 < (full < 1e-10).sum() < 300
    assert (short[full < 1e-10] < 1e-9).all()
    assert (short[full > 1e-8] > 1e-9).all()
    assert ((short > 1e-9) & (short != full)).sum() > 20  # some were given up


def test_large_tables_are_tested_too():
    """Too many rows for a convolution: by deals, or by the bound if the difference is large."""
    rng = np.random.default_rng(0)
    alike = np.stack([rng.multinomial(n, [0.3, 0.3, 0.4]) for n in (40_000, 60_000)]).astype(float)
    assert 0.001 < p_value(alike, deals=10**9) <= 1
    apart = np.stack([rng.multinomial(40_000, law) for law in ([0.3, 0.3, 0.4], [0.35, 0.28, 0.37])]).astype(float)
    assert p_value(apart, deals=10**9) < 1e-9
    assert p_value(np.array([[4e9, 1e9], [3.9e9, 1.1e9]]), deals=1000) < 1e-12


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


# Rewards, sources and steps ------------------------------------------------------------------------------------------


def made_up(sources, states=("a", "b", "c"), actions=("x", "y"), step=None, scale=1.0):
    """Counts of (source, state, action, next state or -1 for an end, reward, n)."""
    source, state, action, after, reward, n = (np.array(column) for column in zip(*sources, strict=True))
    names, source = np.unique(source, return_inverse=True)
    columns = {
        "source": source,
        "step": step,
        "state": state,
        "action": action,
        "next_state": after,
        "terminated": after == -1,
        "n": n,
        "reward_sum": scale * reward * n,
        "reward_min": scale * reward,
        "reward_max": scale * reward,
    }
    return cs.Counts.combined(cs.Space(states, actions), names.tolist(), columns)


REWARDED = [("p", 0, 0, 1, 0.1, 90), ("p", 0, 0, 1, 0.3, 10), ("q", 0, 0, 1, 0.1, 20), ("q", 0, 0, 1, 0.3, 80)]


def test_a_difference_in_continuous_rewards_is_a_contradiction():
    """As in LaLonde's data: earnings after the same action, 4,555 on average in one source and 14,847 in the other."""
    rng = np.random.default_rng(0)
    logs = []
    for source, mean, n in (("trial", 4555.0, 260), ("survey", 14847.0, 16_000)):
        reward = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(mean / 0.7, n))
        zeros, no = np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
        space = cs.Space(["person"], ["control"])
        logs.append(cs.Logs(space, source, range(n), zeros, zeros, zeros, reward, zeros - 1, ~no, no))
    counts = cs.count(logs)
    assert not counts.discrete_rewards
    (found,) = cs.contradictions(counts)
    assert "it ends with a reward" in str(found)
    assert found.p_value < 1e-4
    assert found.confounding > 100  # the action is always taken
    assert "or they did not watch the same world, or a hidden cause lasts over the episode" in str(found)


def test_a_small_difference_between_large_sources_is_found_by_as_many_deals_as_that_takes():
    """Eight outcomes: the p-value is 7e-4, but a bound by single outcomes 0.5, and a convolution too much work."""
    rows = [(name, 0, 0, o, 0.0, 2000 + sign * (-1) ** o) for name, sign in (("p", 56), ("q", -56)) for o in range(8)]
    assert len(cs.contradictions(made_up(rows, states=range(8), actions=["x"]))) == 1


def test_sources_without_rows_do_not_contradict_each_other():
    counts = made_up([("p", 0, 0, 1, 0.0, 3), ("q", 0, 0, 2, 0.0, 3)])
    empty = replace(counts, **{name: getattr(counts, name)[:0] for name in counts.COLUMNS if name != "step"})
    found = cs.contradictions(empty)
    assert (len(found), found.compared, found.shared) == (0, 0, 0)


@pytest.mark.parametrize("scale", [-3.0, 1e6])
def test_the_scale_of_rewards_changes_nothing(scale):
    (one,), (other,) = cs.contradictions(made_up(REWARDED)), cs.contradictions(made_up(REWARDED, scale=scale))
    assert (one.p_value, one.confounding, one.visits) == (other.p_value, other.confounding, other.visits)


def test_rewards_that_differ_by_rounding_are_equal():
    single = float(np.float32(0.1))
    rows = [("p", 0, 0, 1, 0.1, 500), ("q", 0, 0, 1, single, 500)]
    assert len(cs.contradictions(made_up(rows))) == 0
    assert len(excess_masses(made_up(rows)).total) == 0


def random_rows(rng, sources, states=4, actions=3, steps=None, most=60):
    rows, step = [], []
    for h in range(steps or 1):
        for name in sources:
            for s in range(states):
                for x in range(actions):
                    law = rng.dirichlet(np.ones(states + 1))
                    for after, n in enumerate(rng.multinomial(rng.integers(0, most) ** 2 // most, law)):
                        if n:
                            rows.append((name, s, x, after - 1, float(after % 2), int(n)))
                            step.append(h)
    return rows, np.array(step) if steps else None


def test_the_order_of_sources_changes_nothing_but_their_order():
    rng = np.random.default_rng(3)
    rows, _ = random_rows(rng, ("a", "b", "c"))
    swapped = [({"a": "c", "b": "b", "c": "a"}[row[0]], *row[1:]) for row in rows]
    one, two = (cs.contradictions(made_up(held, range(4), range(3))) for held in (rows, swapped))
    name = {"a": "c", "b": "b", "c": "a"}
    pairs = {(frozenset((item.first, item.second)), item.state, item.action) for item in one}
    others = {(frozenset((name[item.first], name[item.second])), item.state, item.action) for item in two}
    assert pairs
    assert pairs == others
    assert sorted(item.confounding or 0 for item in one) == pytest.approx(sorted(item.confounding or 0 for item in two))


def test_many_sources_are_compared_in_pairs_that_share_a_cell():
    """300 sources, each in two states of its own and one that all share."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(300):
        for s in (0, 1 + 2 * i, 2 + 2 * i):
            right = rng.binomial(60, 0.5 if i else 1.0)
            rows += [(f"{i:03}", s, 0, after, 0.0, n) for after, n in ((1, right), (2, 60 - right)) if n]
    found = cs.contradictions(made_up(rows, range(601), ["x"]))
    assert found.shared == found.compared == 300 * 299 // 2
    assert all(item.first == "000" for item in found)
    assert len(found) > 20


# Masses above 1 ------------------------------------------------------------------------------------------------------


def survey_and_trial(rng=None, employed=0.646):
    """As in LaLonde's data: 16,177 people of whom 1.1% were treated, and a trial of 445, 58% of them controls."""
    rows = []
    for source, people, share, law in (("survey", 16_177, 0.989, 0.86), ("trial", 445, 0.58, employed)):
        shares = np.array([share * law, share * (1 - law), (1 - share) * 0.75, (1 - share) * 0.25])
        n = np.round(people * shares) if rng is None else rng.multinomial(people, shares)
        rows += [(source, 0, i // 2, -1, float(i % 2 == 0), n[i]) for i in range(4) if n[i]]
    return made_up(rows, ["person"], ["control", "treated"])


def test_masses_above_one_say_that_the_sources_did_not_watch_one_world():
    found = cs.contradictions(survey_and_trial())
    (item,) = found.excess
    assert (item.state, item.action, item.step) == ("person", "control", None)
    assert item.total == pytest.approx(0.989 * 0.86 + 0.58 * 0.354, abs=0.002)
    assert item.p_value < 0.05
    assert found.findings()[0].startswith(
        "The sources prove more mass than there is, even with unlimited confounding, for control in person (1.06, p ="
    )
    assert "they did not watch the same world, or a hidden cause lasts over the episode" in found.findings()[0]
    hidden = replace(found, excess=(replace(item, total=math.nan, p_value=math.nan),))
    assert "1.06" not in hidden.findings()[0]


def brute_force(counts, level):
    """Cells whose lower limits at a corrected level add up to more than 1, in plain loops."""
    step = [0] * len(counts) if counts.step is None else counts.step.tolist()
    visits, cells = defaultdict(float), defaultdict(dict)
    columns = (counts.source, counts.state, counts.action, counts.next_state, counts.reward_min, counts.n)
    for h, i, s, x, after, reward, n in zip(step, *(column.tolist() for column in columns), strict=True):
        visits[h, s, i] += n
        cells[h, s, x][i, (after, reward)] = n
    sources = defaultdict(set)
    for h, s, i in visits:
        sources[h, s].add(i)
    tests = len(counts.space.actions) * sum(len(held) >= 2 for held in sources.values())
    possible = (2 * len(counts.space.states) + 1) * 64
    result = set()
    for (h, s, x), held in cells.items():
        weight = {i: visits[h, s, i] ** -0.5 for i in sources[h, s]}
        masses, limits = defaultdict(float), defaultdict(float)
        for (i, outcome), n in held.items():
            others = {o for j, o in held if j != i}
            share = 0.9 / len(others) if outcome in others else 0.1 / possible
            alpha = level / tests * share * weight[i] / sum(weight.values())
            limits[outcome] = max(limits[outcome], FixedTrials(alpha).lower(n, visits[h, s, i]))
            masses[outcome] = max(masses[outcome], n / visits[h, s, i])
        if sum(limits.values()) > 1:
            result.add((h, s, x, round(sum(masses.values()), 9)))
    return result


@pytest.mark.parametrize("steps", [None, 2])
def test_excess_masses_are_those_of_a_plain_computation(steps):
    rng = np.random.default_rng(1)
    rows, step = random_rows(rng, ("a", "b", "c"), states=4, actions=2, steps=steps, most=1000)
    counts = made_up(rows, range(4), range(2), step=step)
    found = excess_masses(counts)
    assert (np.diff(found.total) <= 0).all()
    for level in (1e-6, 1e-3, 0.05, 0.9):
        sure = found.p_value <= level
        columns = (*cell_parts(counts, found.cell), found.total.round(9))
        assert set(zip(*(column[sure].tolist() for column in columns), strict=True)) == brute_force(counts, level)
    assert (found.p_value < 1).any()


def test_the_excess_test_keeps_its_level_and_has_power():
    """At the edge of one world, masses of exactly 1; and for a trial like LaLonde's, of four times the size."""
    rng = np.random.default_rng(0)
    edge = 1 - (1 - 0.989 * 0.86) / 0.58
    false = [(excess_masses(survey_and_trial(rng, edge)).p_value <= 0.05).any() for _ in range(300)]
    assert np.mean(false) <= 0.05
    right = [(excess_masses(survey_and_trial(rng)).p_value <= 0.05).any() for _ in range(100)]
    assert np.mean(right) > 0.4
    right = [(excess_masses(survey_and_trial(rng, 0.5)).p_value <= 0.001).any() for _ in range(30)]
    assert np.mean(right) == 1


@pytest.mark.parametrize("name", ["lavacross-easy", "walking-robot"])
def test_sources_of_one_world_have_no_excess_of_mass(name):
    world = cs.load_world(name)
    for seed in range(10):
        for by_step in (False, True):
            logs = [world.collect(d, 5000, seed) for d in world.demonstrators]
            assert (excess_masses(counted(logs, by_step)).p_value > 0.05).all()


def test_unknown_outcomes_add_to_no_mass():
    rows = [("p", 0, 0, 1, 0.0, 400), ("q", 0, 0, 2, 0.0, 400)]
    assert excess_masses(made_up(rows)).total.tolist() == [2.0]
    counts = made_up(rows)
    unknown = replace(counts, next_state=np.where(counts.source == 1, -1, counts.next_state))
    assert excess_masses(unknown).total.tolist() == []


def test_many_contradictions_name_the_reasons_once_and_the_surest_ones():
    item = cs.Contradiction("a", "b", 0, "0", "go", 0.001, "ends", 0.9, 0.1, (50, 50), 3.0)
    for many, shown in ((2, 3), (20, 21), (25, 22)):
        found = cs.Contradictions((item,) * many, ("a", "b"), 0.05, 40, 40).findings()
        assert len(found) == shown
        assert sum("did not watch the same world" in line for line in found) == 1
        needed = "It takes a confounding of at least 3 to reconcile them."
        assert found[1].endswith(f"in 0: it ends in 90% against 10%. {needed}")
    assert found[-1] == "And 5 more."


def test_many_pairs_of_sources_are_told_beforehand(monkeypatch):
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect("random", 200, seed=seed, source=f"s{seed}") for seed in range(4)])
    found = cs.contradictions(counts)
    monkeypatch.setattr(_compare, "MANY_PAIRS", found.shared - 1)
    with pytest.warns(RuntimeWarning, match=f"^{found.shared:,} pairs of sources .* about 1 min:"):
        assert cs.contradictions(counts).compared == found.compared
