"""Coverage and unseen mass: what the sources show of the space, and what was probably never seen."""

import json
import sys
from collections import defaultdict

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.diagnose.coverage import BETS
from studies.docs.tables import counted


def test_coverage_counts_states_visits_and_untried_actions():
    world = cs.load_world("lavacross-hard")
    logs = world.collect("good", 2000, seed=5)
    (found,) = cs.coverage(cs.count(logs), few_visits=20)
    visits = np.bincount(logs.state, minlength=49)
    assert found.steps == 2000
    assert found.states == (visits > 0).sum()
    assert set(found.few_visits) == {world.states[s] for s in np.flatnonzero((visits > 0) & (visits < 20))}
    seen = set(logs.state) | set(logs.next_state)
    assert set(found.unseen_states) == {label for s, label in enumerate(world.states) if s not in seen}
    pairs = set(zip(logs.state.tolist(), logs.action.tolist(), strict=True))
    assert len(found.untried_actions) == 5 * found.states - len(pairs)
    for state, action in found.untried_actions:
        assert (world.space.state_position(state), world.space.action_position(action)) not in pairs
    most = sum(np.bincount(logs.action[logs.state == s]).max() for s in np.unique(logs.state))
    assert found.action_share == pytest.approx(most / 2000)


def test_unseen_mass_is_the_share_of_outcomes_seen_once():
    space = cs.Space(["a", "b", "c", "d"], ["go"])
    after = [1, 1, 1, 2, 3]  # b three times, c and d once
    n = len(after)
    logs = cs.Logs(space, "s", range(n), [0] * n, [0] * n, [0] * n, [0.0] * n, after, [False] * n, [True] * n)
    np.testing.assert_array_equal(cs.unseen_mass(cs.count(logs)), [0.4, np.nan, np.nan, np.nan])


def test_unseen_mass_is_right_on_average():
    """Good and Turing: after n visits, the mean estimate is the mass that n - 1 visits leave unseen.

    Episodes of one step, so that the number of visits does not depend on what followed them.
    """
    world = cs.load_world("lavacross-maze", horizon=1)
    truth = world.model.observe(world.demonstrators["bad"], "bad")
    chances = defaultdict(lambda: defaultdict(float))  # state -> outcome -> probability, all actions together
    for s, after, reward, n in zip(truth.state, truth.next_state, truth.reward_min, truth.n, strict=True):
        chances[s][after, reward] += n
    estimates, expected = [], []
    for seed in range(60):
        logs = world.collect("bad", 400, seed)
        visits, unseen = np.bincount(logs.state, minlength=49), cs.unseen_mass(counted([logs]))
        for s in np.flatnonzero(visits):
            p = np.array(list(chances[s].values()))
            estimates.append(unseen[s])
            expected.append((p * (1 - p) ** (visits[s] - 1)).sum())
    error = np.std(np.array(estimates) - expected) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - np.mean(expected)) < 3.5 * error  # sigmas
    assert np.mean(expected) > 20 * error  # and there is something to estimate


def test_ends_are_one_outcome_where_a_source_does_not_tell_them_apart():
    space = cs.Space(["a", "x", "y"], ["go"])
    after, n = [1, 2, -1, -1], 4
    logs = cs.Logs(space, "s", range(n), [0] * n, [0] * n, [0] * n, [0.0] * n, after, [True] * n, [False] * n)
    assert cs.unseen_mass(cs.count(logs))[0] == 0.0


def test_coverage_is_a_sequence_a_table_and_words():
    world = cs.load_world("lavacross-hard")
    found = cs.coverage(cs.count([world.collect(name, 2000, seed=5) for name in ("good", "random")]))
    assert [item.source for item in found] == ["good", "random"]
    assert found[0] is found.items[0]
    assert len(found) == 2
    assert "\n" not in repr(found)
    assert f"good {found[0].states}" in repr(found)
    assert str(found).splitlines()[0] == "Coverage"
    assert found.to_pandas().groupby("source").size().to_dict() == {item.source: item.states for item in found}
    assert json.loads(found.to_json())[1]["steps"] == 2000


def one_state(*outcomes):
    """Counts of one state that was followed by each of some outcomes a number of times."""
    size = len(outcomes)
    space = cs.Space(["s", *(f"o{i}" for i in range(size))], ["go"])
    columns = dict.fromkeys(("source", "state", "action", "reward_sum", "reward_min", "reward_max"), [0] * size)
    rest = {"step": None, "next_state": range(1, size + 1), "terminated": [False] * size, "n": outcomes}
    return cs.Counts.combined(space, ["source"], columns | rest)


def second_part_by_simulation(outcomes, theta, rho, c, rng, times):
    """The e-value of `unseen_limit`, as a mean over random second parts."""
    kept = rng.binomial(outcomes, rho, (times, len(outcomes)))
    return ((1 - c) ** (kept == outcomes).sum(axis=1) / (1 - c * theta) ** kept.sum(axis=1)).mean()


def test_the_limit_of_unseen_mass_is_where_the_mean_over_second_parts_reaches_its_level():
    rng = np.random.default_rng(0)
    outcomes = np.array([6, 4, 2, 1, 1])
    theta = cs.unseen_limit(one_state(*outcomes))[0]
    means = [second_part_by_simulation(outcomes, theta, rho, c, rng, 40_000) for rho, c in BETS]
    assert np.mean(means) == pytest.approx(1 / 0.05, rel=0.1)


@pytest.mark.parametrize("law", [[0.97, 0.02, 0.01], [0.05] * 20, [0.5, *[0.005] * 100], [0.9, *[0.01] * 10]])
def test_limits_of_unseen_mass_hold(law):
    """At 95%, in 300 repetitions each: fewer than 15 + 2 sigma failures. And what is excluded is hardly ever missed."""
    rng, law = np.random.default_rng(1), np.array(law)
    failures = missed = 0
    for _ in range(300):
        n = rng.multinomial(200, law)
        counts = one_state(*n[n > 0])
        limit, share = cs.unseen_limit(counts)[0], cs.rarest_seen(counts)[0]
        failures += law[n == 0].sum() > limit
        missed += bool((law[n == 0] > share).any())
        assert limit >= cs.unseen_mass(counts)[0]
    assert failures <= 22
    assert missed <= 22


@pytest.mark.parametrize("measure", [cs.unseen_limit, cs.rarest_seen])
def test_limits_hold_in_all_states_together(measure):
    space = cs.Space(["s", "t", "o0", "o1", "o2"], ["go"])
    columns = dict.fromkeys(("source", "action", "reward_sum", "reward_min", "reward_max", "terminated"), [0] * 6)
    rest = {"step": None, "state": [0, 0, 0, 1, 1, 1], "next_state": [2, 3, 4] * 2, "n": [30, 5, 1] * 2}
    both = cs.Counts.combined(space, ["source"], columns | rest)
    alone = measure(one_state(30, 5, 1), confidence=0.975)[0]
    np.testing.assert_allclose(measure(both, confidence=0.95)[:2], alone, rtol=1e-6)


def test_limits_are_useful():
    """Of 1,000 visits that showed two outcomes, 4.5 visits' worth; with ten more seen once, twice their 1%."""
    assert cs.unseen_limit(one_state(500, 500))[0] == pytest.approx(0.0045, abs=2e-4)
    assert cs.unseen_limit(one_state(495, 495, *[1] * 10))[0] == pytest.approx(0.021, abs=1e-3)
    assert cs.unseen_limit(one_state(1))[0] == pytest.approx(1.0)
    share = cs.rarest_seen(one_state(500, 500))[0]
    assert (1 - share) ** 1000 / share == pytest.approx(0.05, rel=1e-4)
    assert np.isnan(cs.unseen_limit(one_state(5))[1])
    assert np.isnan(cs.rarest_seen(one_state(5))[1])


def test_actions_that_do_not_exist_are_not_called_untried():
    space = cs.Space(["s", "t"], ["go", "stay"], admissible={"s": ["go"]})
    logs = cs.Logs(space, "s", [0], [0], [0], [0], [0.0], [1], [False], [True])
    assert cs.coverage(cs.count(logs))[0].untried_actions == ()


def test_limits_of_unseen_mass_do_not_depend_on_the_size_of_blocks(monkeypatch):
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 300) for name in world.demonstrators])
    whole = cs.unseen_limit(counts)
    for block in (1, 7):
        monkeypatch.setattr(sys.modules["causal_shaping.diagnose.coverage"], "BLOCK", block)
        np.testing.assert_array_equal(cs.unseen_limit(counts), whole)
