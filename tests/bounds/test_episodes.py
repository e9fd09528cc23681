"""Ceilings of whole episodes hold although a hidden cause lasts, at population level and as often as they say."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from persistent import END, PersistentWorld, drug_world, random_world
from properties import fewer
from scipy.stats import binom

import causal_shaping as cs
from causal_shaping.bounds._histories import Tree
from causal_shaping.bounds.episodes import EpisodeSettings, bound_episodes, mean_limit
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError, DataError, FileError, UnknownNameError


def population_ceilings(world, reward_max=None, **options):
    """Return the ceilings of all trajectories with their masses."""
    logs, masses = zip(*(world.population(i) for i in range(len(world.demonstrators))), strict=True)
    bound = float(world.reward.max()) if reward_max is None else reward_max
    return bound_episodes(logs, EpisodeSettings(world.horizon, bound, discount=world.discount, **options), masses)


def short_logs(episodes, actions=2, states=2, source="ward"):
    """Return logs of episodes, each (rows of (state, action, reward), how it stopped)."""
    rows = []
    for i, (steps, stop) in enumerate(episodes):
        for h, (state, action, reward) in enumerate(steps):
            last = h == len(steps) - 1
            after = UNKNOWN if last else steps[h + 1][0]
            rows.append((i, h, state, action, reward, after, last and stop == "ended", last and stop == "cut"))
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return cs.Logs(cs.Space(range(states), range(actions)), source, **columns)


# The recursion -----------------------------------------------------------------------------------------------


@st.composite
def few_episodes(draw):
    """A few short episodes, rewards of 0, 1/2, 1 with an offset, and how each stopped."""
    offset = draw(st.sampled_from([0.0, -0.5, -2.0]))
    row = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0.0, 0.5, 1.0]).map(lambda r: r + offset))
    stop = st.sampled_from(["ended", "cut", "unknown"])
    return offset, draw(st.lists(st.tuples(st.lists(row, min_size=1, max_size=3), stop), min_size=1, max_size=5))


def best_policy(episodes, first, horizon, bound, discount, read_rewards):
    """Try every policy: a choice for each history of a logged episode; return the best mean of what it may earn."""

    def vacuous(left):
        return sum(bound * discount**h for h in range(left)) if bound >= 0 else (bound if left else 0.0)

    def history(steps, h):
        seen = tuple((s, x, r if read_rewards else None) for s, x, r in steps[:h])
        return (*seen, steps[h][0])

    own = [(steps[:horizon], stop if len(steps) <= horizon else "cut") for steps, stop in episodes]
    own = [(steps, stop) for steps, stop in own if steps[0][0] == first]
    histories = list({history(steps, h) for steps, _ in own for h in range(len(steps))})
    best = -math.inf
    for choice in itertools.product(range(2), repeat=len(histories)):
        policy, total = dict(zip(histories, choice, strict=True)), 0.0
        for steps, stop in own:
            for h, (_, x, reward) in enumerate(steps):
                if policy[history(steps, h)] != x:
                    total += discount**h * vacuous(horizon - h)
                    break
                total += discount**h * reward
            else:
                left = horizon - len(steps)
                rest = {"ended": 0.0, "cut": vacuous(left), "unknown": max(0.0, vacuous(left))}[stop] if left else 0.0
                total += discount ** len(steps) * rest
        best = max(best, total / len(own))
    return min(best, vacuous(horizon))


@given(few_episodes(), st.integers(1, 4), st.sampled_from([1.0, 0.5]), st.booleans())
@fewer(60)
def test_the_recursion_is_the_best_of_all_policies(drawn, horizon, discount, read_rewards):
    offset, episodes = drawn
    bound = 1.0 + offset
    found = cs.episode_ceilings(
        short_logs(episodes), horizon, bound, discount=discount, ignore_rewards=not read_rewards
    )
    for state in range(2):
        if found.began[state]:
            expected = best_policy(episodes, state, horizon, bound, discount, read_rewards)
            assert found.values[0, state] == pytest.approx(expected, abs=1e-12)
        else:
            assert found.values[0, state] == found.vacuous_values[-1]


def test_the_state_that_followed_is_part_of_a_history():
    """In the second step the action that is the number of the state pays; which state it is, is a coin."""
    then = [[(0, 0, 0.0), (state, x, float(x == state))] for state in range(2) for x in range(2)]
    episodes = [(steps, "ended") for steps in then] + [([(0, 1, 0.0)], "ended")]
    found = cs.episode_ceilings(short_logs(episodes), 2, 1.0)
    assert found.values[0, 0] == pytest.approx(best_policy(episodes, 0, 2, 1.0, 1.0, True))
    assert _tree(short_logs(episodes), 2).levels[0].after.tolist() == [0, 0, 1, 1, -1]


def test_later_steps_and_states_in_which_no_episode_began_are_vacuous():
    logs = short_logs([([(0, 0, 1.0)], "ended"), ([(0, 1, 0.0)], "ended")])
    found = cs.episode_ceilings(logs, 3, 1.0, discount=0.5)
    assert found.vacuous_values.tolist() == [1.0, 1.5, 1.75]
    assert found.values[0, 1] == 1.75
    assert found.values[1:].tolist() == [[1.5, 1.5], [1.0, 1.0]]
    assert found.values[0, 0] == (1.0 + 1.75) / 2
    assert not hasattr(found, "potential")


def test_an_action_that_nobody_tried_may_earn_anything():
    logs = short_logs([([(0, 0, 0.0)], "ended"), ([(0, 1, 0.0)], "ended")] * 5, actions=2)
    assert cs.episode_ceilings(logs, 1, 1.0).values[0, 0] == 0.5
    declared = cs.episode_ceilings(logs, 1, 1.0, actions=[0, 1, 2])
    assert declared.values[0, 0] == 1.0
    assert "than the 3 declared or seen in the logs." in " ".join(declared.assumptions)
    assert "No source tried every action" in declared.verdict
    excluded = cs.episode_ceilings(logs, 1, 1.0, actions=[0, 1, 2], admissible={0: [0, 1]})
    assert excluded.values[0, 0] == 0.5
    assert "only its admissible ones" in " ".join(excluded.assumptions)
    with pytest.raises(DataError, match="action 1 is not admissible in 0"):
        cs.episode_ceilings(logs, 1, 1.0, admissible={0: [0]})


def test_where_only_one_action_exists_nobody_can_depart():
    logs = short_logs([([(0, 0, 0.5), (1, 0, 0.0)], "ended")] * 4)
    found = cs.episode_ceilings(logs, 2, 1.0, admissible={0: [0], 1: [0]})
    assert found.values[0, 0] == 0.5
    assert found.shares.tolist() == [1.0, 1.0]


def test_logs_that_stop_before_the_horizon_leave_the_rest_open():
    ended = [([(0, x, 0.0)], "ended") for x in (0, 1)]
    cut = [([(0, x, 0.0)], "cut") for x in (0, 1)]
    assert cs.episode_ceilings(short_logs(ended), 3, 1.0).values[0, 0] == 1.5  # half of 0, half of 3
    found = cs.episode_ceilings(short_logs(cut), 3, 1.0)
    assert found.values[0, 0] == 2.5  # half of 0 + 2, half of 3
    assert found.open_ends.tolist() == [2]
    assert "2 of 2 episodes stop before the horizon without having ended" in found.summary()
    whole = [([(0, x, 0.0)] * 3, "cut") for x in (0, 1)]
    found = cs.episode_ceilings([short_logs(ended + whole + cut[:1]), replace(short_logs(ended), source="e")], 3, 1.0)
    assert found.open_ends.tolist() == [1, 0]
    assert "1 of 7 episodes stop before the horizon without having ended" in found.summary()


def test_an_unknown_end_may_have_been_one_where_every_step_costs():
    for stop, rest in (("ended", 0.0), ("cut", -0.5), ("unknown", 0.0)):
        logs = short_logs([([(0, x, -1.0)], stop) for x in (0, 1)])
        # Half of the episodes depart at once and pay 0.5 at least; the others pay 1 and what may follow.
        assert cs.episode_ceilings(logs, 3, -0.5).values[0, 0] == (-0.5 + -1.0 + rest) / 2
    logs = short_logs([([(0, x, -1.0)], "unknown") for x in (0, 1)])
    assert cs.episode_ceilings(logs, 3, -0.5, fixed_length=True).values[0, 0] == (-1.5 + -1.0 + -1.0) / 2


def test_what_follows_a_history_with_an_untried_action_is_not_looked_at():
    world = cs.load_world("lavacross-easy")
    logs = world.collect("random", 20_000)
    found = cs.episode_ceilings(logs, 20, 0.1)
    begin = np.flatnonzero(logs.step == 0)
    assert found.episodes.sum() == len(begin)
    # Five actions: 1,700 episodes from 43 cells fill few levels.
    settled = bound_episodes([logs], EpisodeSettings(20, 0.1))
    np.testing.assert_array_equal(settled.values, found.values)
    assert len(_tree(logs, 20).levels) <= 4


def _tree(logs, horizon):
    from causal_shaping.bounds.episodes import _episodes

    episodes = _episodes(logs, np.zeros(len(logs), dtype=np.int64), np.ones(logs.episodes), EpisodeSettings(1, 1.0))
    return Tree.grown(episodes, logs.space.is_admissible, horizon)


# Validity ----------------------------------------------------------------------------------------------------


def violations(world, found, **reading):
    """Return by how much the ceilings lie below the best mean return, the mean over first states included."""
    best = np.array([world.optimum(state, **reading) for state in range(world.shape[0])])
    first = world.start.sum(axis=0)
    below = [*(best - found.values[0]), (first * best).sum() - found.mean]
    return max(below), best


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_ceilings_hold_in_worlds_with_hidden_causes_that_last(horizon):
    for seed in range(25):
        world = random_world(np.random.default_rng([horizon, seed]), horizon)
        found = population_ceilings(world)
        assert violations(world, found)[0] <= 1e-9, seed
        assert (found.values <= found.vacuous_values[::-1, None] + 1e-12).all()
        coarse = population_ceilings(world, ignore_rewards=True)
        assert violations(world, coarse, read_rewards=False)[0] <= 1e-9
        assert (coarse.values[0] <= found.values[0] + 1e-9).all()
        assert (found.shares[~np.isnan(found.shares)] <= 1).all()


def test_the_ordinary_ceiling_fails_where_the_episode_ceiling_holds():
    failed = 0
    for seed in (18, 19, 24, 35):
        world = random_world(np.random.default_rng([2, seed]), 2)
        options = {"support": "any", "discount": world.discount}
        ordinary = cs.value_ceilings(world.counts(), 2, float(world.reward.max()), **options)
        below, best = violations(world, population_ceilings(world))
        failed += bool((ordinary.values[0] < best - 1e-9).any())
        assert below <= 1e-9
    assert failed == 4


def test_two_drugs_of_which_the_right_one_lasts_for_the_stay():
    world = drug_world(horizon=6, cure=0.9)
    best = world.optimum(0)
    assert best == pytest.approx(0.999)  # one drug until it has failed, then the other: three tries each
    ordinary = cs.value_ceilings(world.counts(), 6, 1.0, support="any", value_max=1.0)
    assert 0.75 < ordinary.values[0, 0] < 0.85
    found = population_ceilings(world, value_max=1.0)
    assert best <= found.values[0, 0] <= 1.0
    assert "Not useful with these logs at any horizon." in found.verdict  # the optimum is nearly the most possible
    sample = [world.sample(i, 2_000, np.random.default_rng(i)) for i in range(2)]
    found = cs.episode_ceilings(sample, 6, 1.0, reward_min=0.0, value_max=1.0, confidence=0.95)
    assert best <= found.values[0, 0] <= 1.0


def test_an_agent_that_reads_more_than_is_stated_can_earn_more():
    """The reward of the first step tells which action of the second one pays 1; its actions are tossed."""
    after, reward = np.zeros((2, 1, 2, 2, 1), dtype=int), np.zeros((2, 1, 2, 2, 1))
    reward[0, 0, :, 1] = 0.5
    after[1], reward[1, 0, 0, 0], reward[1, 0, 1, 1] = END, 1.0, 1.0
    toss = np.full((2, 1, 2, 1, 2), 0.5)
    world = PersistentWorld(2, np.full((2, 1), 0.5), np.ones(1), after, reward, (toss,), np.zeros((3, 2)))
    assert (world.optimum(0), world.optimum(0, read_rewards=False)) == (1.25, 0.75)
    exact, coarse = (population_ceilings(world, ignore_rewards=ignored) for ignored in (False, True))
    # The first action is followed in half of the episodes, otherwise 2; then the right one in half of these, or 1.
    assert exact.values[0, 0] == 0.5 * (0.25 + 0.5 * 1 + 0.5) + 0.5 * 2
    assert coarse.values[0, 0] == 0.5 * (0.25 + 0.5 * 0.5 + 0.5) + 0.5 * 2
    bins = population_ceilings(world, reward_bins=cs.Bins(edges=(0.25,)))
    assert bins.values[0, 0] == exact.values[0, 0]  # bins that distinguish what matters
    assert "neither the rewards nor anything else" in " ".join(coarse.assumptions)
    # With one first action to choose from, the coarse ceiling lies below what an agent that reads rewards earns.
    only = replace(world, demonstrators=(np.stack([[[[[1.0, 0.0]]] * 2], [[[[0.5, 0.5]]] * 2]]).reshape(toss.shape),))
    logs, mass = only.population(0)
    settled = EpisodeSettings(2, 1.0, ignore_rewards=True)
    one = [replace(logs, space=cs.Space([0, 1], [0, 1], admissible={0: [0]}), state=logs.step, next_state=_next(logs))]
    assert bound_episodes(one, settled, [mass]).values[0, 0] == 0.25 + 0.75 < world.optimum(0)
    assert bound_episodes(one, settled._replace(ignore_rewards=False), [mass]).values[0, 0] == 0.25 + 1.0


def _next(logs):
    """The next states of logs whose states number the steps."""
    return np.where(logs.next_state == UNKNOWN, UNKNOWN, logs.step + 1)


def test_several_sources_give_the_smallest_bound():
    world = drug_world(horizon=2)
    one, other = (world.population(i) for i in range(2))
    settled = EpisodeSettings(2, 1.0)
    alone = [bound_episodes([logs], settled, [mass]).values[0, 0] for logs, mass in (one, other)]
    both = bound_episodes([one[0], other[0]], settled, [one[1], other[1]])
    assert both.values[0, 0] == min(alone)
    assert both.mean == pytest.approx(min(alone))


@given(st.integers(0, 10_000), st.sampled_from([64.0, 3.0]))
@fewer(15)
def test_scale_and_the_order_of_states_and_sources_change_nothing(seed, factor):
    world = random_world(np.random.default_rng(seed), 2)
    found = population_ceilings(world)
    larger = population_ceilings(replace(world, reward=world.reward * factor), found.reward_max * factor)
    np.testing.assert_allclose(larger.values, found.values * factor, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(larger.shares, found.shares, atol=1e-12)
    assert larger.verdict.split(" the ceiling")[1][:20] == found.verdict.split(" the ceiling")[1][:20]
    logs, masses = zip(*(world.population(i) for i in range(len(world.demonstrators))), strict=True)
    turned = [_turned(one) for one in logs][::-1]
    settled = EpisodeSettings(2, found.reward_max, discount=world.discount)
    other = bound_episodes(turned, settled, masses[::-1])
    np.testing.assert_allclose(other.values[:, ::-1], found.values, rtol=1e-12)


def _turned(logs):
    """The same logs in a space whose states and actions come in the opposite order."""
    space = cs.Space(logs.space.states[::-1], logs.space.actions[::-1])
    last = len(space.states) - 1
    after = np.where(logs.next_state == UNKNOWN, UNKNOWN, last - logs.next_state)
    return replace(
        logs, space=space, state=last - logs.state, action=len(space.actions) - 1 - logs.action, next_state=after
    )


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_an_offset_of_rewards_changes_no_verdict_where_episodes_have_a_fixed_length(confidence):
    world = random_world(np.random.default_rng(5), 3, ending=False)
    logs = world.sample(0, 400, np.random.default_rng(0))
    bound = float(world.reward.max())
    options = {"fixed_length": True, "confidence": confidence}
    found = cs.episode_ceilings(logs, 3, bound, **options)
    for offset in (-4.0, 2.0):
        moved = cs.episode_ceilings(replace(logs, reward=logs.reward + offset), 3, bound + offset, **options)
        np.testing.assert_allclose(moved.values[0], found.values[0] + 3 * offset, atol=1e-9)
        np.testing.assert_allclose(moved.shares, found.shares, atol=1e-9)
        assert moved.verdict == found.verdict


# Finite samples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_limits_of_means_are_wrong_no_more_often_than_alpha(alpha):
    for n in (1, 5, 40):
        k = np.arange(n + 1)
        limit = mean_limit(k / n, n, alpha)
        assert (np.diff(limit) > 0).all()  # what the proof needs: the limit rises with the mean
        for p in np.linspace(0.01, 0.99, 50):
            assert binom.pmf(k, n, p)[limit < p].sum() <= alpha + 1e-12


def test_limits_of_means_are_where_the_entropy_reaches_the_evidence():
    mean, n, alpha = 0.3, 50, 0.05
    p = float(mean_limit(mean, n, alpha))
    entropy = mean * math.log(mean / p) + (1 - mean) * math.log((1 - mean) / (1 - p))
    assert n * entropy == pytest.approx(math.log(1 / alpha))
    assert p > mean


@pytest.mark.parametrize("reward_min", ["true", None])
def test_ceilings_with_confidence_hold_all_at_once(reward_min):
    """Held against those of the population, for the optimum is far below."""
    failed = 0
    worlds = [random_world(np.random.default_rng([11, seed]), 2) for seed in range(3)]
    for world in worlds:
        exact = population_ceilings(world)
        options = {"discount": world.discount, "confidence": 0.8}
        if reward_min:
            options["reward_min"] = float(world.reward.min())
        for seed in range(20):
            rng = np.random.default_rng(seed)
            logs = [world.sample(i, 60, rng) for i in range(len(world.demonstrators))]
            found = bound_episodes(logs, EpisodeSettings(2, float(world.reward.max()), **options))
            below = (found.by_source < exact.by_source - 1e-9).any() or (found.means[-1] < exact.means[-1] - 1e-9).any()
            failed += bool(below)
    assert failed <= 0.2 * 60


def test_half_of_the_error_goes_to_first_states_and_half_to_means():
    rng, space, logs = np.random.default_rng(0), cs.Space(["a", "b", "end"], ["go", "stay"]), []
    for name in ("d0", "d1"):
        state, action, reward = (rng.integers(2, size=200) for _ in range(3))
        rows, one = np.arange(200), np.ones(200, dtype=np.int64)
        logs.append(cs.Logs(space, name, rows, 0 * one, state, action, reward, 2 * one, one > 0, one < 0))
    plug_in = cs.episode_ceilings(logs, 1, 1.0)
    found = cs.episode_ceilings(logs, 1, 1.0, confidence=0.95, reward_min=0.0)
    limits = mean_limit(plug_in.by_source[:, :2], plug_in.episodes[:, :2], 0.025 / 4)
    np.testing.assert_allclose(found.by_source[:, :2], limits)
    np.testing.assert_allclose(found.means[0], mean_limit(plug_in.means[0], 200, 0.025 / 2))


def test_a_plug_in_maximum_errs_to_the_safe_side_on_average():
    world = random_world(np.random.default_rng([11, 1]), 2)
    exact = population_ceilings(world)
    settled = EpisodeSettings(2, float(world.reward.max()), discount=world.discount)
    rng = np.random.default_rng(0)
    means = [bound_episodes([world.sample(0, 40, rng)], settled).mean for _ in range(60)]
    assert np.mean(means) >= float(exact.means[-1, 0]) - 0.01


def test_confidence_is_looser_than_the_plug_in_and_tightens_with_more_episodes():
    world = drug_world(horizon=2)
    rng = np.random.default_rng(0)
    widths = []
    for episodes in (200, 20_000):
        logs = [world.sample(i, episodes, rng) for i in range(2)]
        plain = cs.episode_ceilings(logs, 2, 1.0)
        sure = cs.episode_ceilings(logs, 2, 1.0, confidence=0.95, reward_min=0.0)
        assert (sure.values[0] >= plain.values[0]).all()
        assert not plain.guaranteed
        assert sure.guaranteed
        widths.append(float(sure.values[0, 0] - plain.values[0, 0]))
    assert widths[1] < widths[0] / 5


def test_rewards_below_the_least_one_count_as_the_least_one():
    rows = [([(0, x, r)], "ended") for x in (0, 1) for r in [1.0] * 50 + [-1000.0]]
    logs = short_logs(rows)
    options = {"confidence": 0.95}
    wide, narrow = (cs.episode_ceilings(logs, 1, 1.0, reward_min=least, **options).values[0, 0] for least in (-1000, 0))
    clipped = replace(logs, reward=np.maximum(logs.reward, 0.0))
    assert narrow == cs.episode_ceilings(clipped, 1, 1.0, reward_min=0.0, **options).values[0, 0]
    assert narrow != wide


def test_without_a_least_reward_every_tenth_episode_chooses_it_and_is_not_used_again():
    rng = np.random.default_rng(0)
    logs = drug_world(horizon=2).sample(0, 100, rng)
    found = cs.episode_ceilings(logs, 2, 1.0, confidence=0.95)
    assert (found.held_out, found.episodes.sum(), found.reward_min) == (10, 90, 0.0)
    chosen = np.arange(100) % 10 != 0
    rest = np.flatnonzero(chosen[logs.episode])
    columns = {name: getattr(logs, name)[rest] for name in cs.Logs.COLUMNS}
    same = cs.episode_ceilings(cs.Logs(logs.space, "d0", **columns), 2, 1.0, confidence=0.95, reward_min=0.0)
    np.testing.assert_array_equal(same.values, found.values)
    assert "10 more episodes only chose the range of rewards" in found.summary()
    assert "Chosen without looking at these logs: reward_min." in " ".join(same.assumptions)


# Rewards of many values --------------------------------------------------------------------------------------


def test_rewards_of_many_values_need_bins_or_an_agent_that_ignores_them():
    rng = np.random.default_rng(3)
    rows = [
        ([(0, int(rng.integers(2)), float(rng.random())), (1, int(rng.integers(2)), float(rng.random()))], "ended")
        for _ in range(300)
    ]
    logs = short_logs(rows)
    exact = cs.episode_ceilings(logs, 2, 1.0)
    assert "different rewards, so that hardly two episodes have the same history" in exact.verdict
    for confidence in (None, 0.95):
        bins = cs.episode_ceilings(logs, 2, 1.0, reward_bins=cs.Bins(quantiles=2), confidence=confidence)
        blind = cs.episode_ceilings(logs, 2, 1.0, ignore_rewards=True, confidence=confidence)
        assert blind.values[0, 0] <= bins.values[0, 0] + 1e-12
        assert len(bins.reward_edges) == 1
        assert "the rewards in 2 bins" in " ".join(bins.assumptions)
    assert cs.episode_ceilings(logs, 2, 1.0, ignore_rewards=True).values[0, 0] < exact.values[0, 0]


# What it takes and gives -------------------------------------------------------------------------------------


def test_it_takes_whatever_count_takes(tmp_path):
    world = drug_world(horizon=3)
    logs = [world.sample(i, 200, np.random.default_rng(i)) for i in range(2)]
    paths = [tmp_path / "d0.parquet", tmp_path / "d1.csv"]
    for one, path in zip(logs, paths, strict=True):
        one.save(path)
    told = []
    found = cs.episode_ceilings(logs, 3, 1.0, progress=lambda done, total, what: told.append((done, total, what)))
    assert told[0][2] == "Reading the logs of d0"
    assert told[-1][0] == told[-1][1]
    frame = pd.concat([one.to_pandas() for one in logs])
    frame["next_state"] = frame["next_state"].astype("Int64")
    tables = [cs.open_logs(path, source=path.stem, actions=[0, 1], states=[0]) for path in paths]
    for given_logs in (paths, tables, frame):
        other = cs.episode_ceilings(given_logs, 3, 1.0, actions=[0, 1])
        np.testing.assert_allclose(other.values[0], found.values[0], rtol=1e-12)
        assert other.sources == ("d0", "d1")


def test_results_in_words_tables_and_files(tmp_path):
    world = random_world(np.random.default_rng(3), 3)
    logs = [world.sample(i, 300, np.random.default_rng(i)) for i in range(len(world.demonstrators))]
    found = cs.episode_ceilings(logs, 3, float(world.reward.max()), discount=0.9, confidence=0.9)
    assert repr(found).startswith("EpisodeCeilings(3 steps from d0")
    assert "\n" not in repr(found)
    text = found.summary()
    for line in ("No potential: later states are not covered.", "horizon  vacuous", "Episodes were not selected by"):
        assert line in text
    frame = found.to_pandas()
    assert len(frame) == found.began.sum()
    np.testing.assert_array_equal(frame["value"], found.values[0][found.began])
    assert found.by_horizon()["share"].tolist() == pytest.approx(found.shares.tolist(), nan_ok=True)
    held = json.loads(found.to_json())
    assert [row["horizon"] for row in held["horizons"]] == [1, 2, 3]
    assert held["states"][0]["value"] == found.values[0][found.began][0]
    found.save(tmp_path / "episodes.parquet")
    again = cs.EpisodeCeilings.load(tmp_path / "episodes.parquet")
    assert again.checksum == found.checksum
    np.testing.assert_array_equal(again.values, found.values)
    assert again.summary() == text
    found.save(tmp_path / "episodes.csv")
    assert len(pd.read_csv(tmp_path / "episodes.csv")) == len(frame)
    with pytest.raises(FileError, match="holds episode ceilings, not ceilings"):
        cs.Ceilings.load(tmp_path / "episodes.parquet")


def test_the_verdict_of_logs_that_earn_the_most():
    found = cs.episode_ceilings(short_logs([([(0, x, 1.0)], "ended") for x in (0, 1)]), 1, 1.0)
    assert found.verdict == "The logged episodes earn the most that is possible: no ceiling can be below that."
    assert np.isnan(found.shares).all()
    assert found.useful_horizon == 0


def test_what_cannot_be_is_refused():
    logs = short_logs([([(0, 0, 1.0), (1, 0, 1.0)], "ended"), ([(0, 1, 0.0)], "cut")])
    with pytest.raises(ArgumentError, match=r"reward_max is 0\.5, but source 'ward' holds a reward of 1\.0"):
        cs.episode_ceilings(logs, 2, 0.5)
    with pytest.raises(ArgumentError, match=r"value_max is 1\.5, but an episode of source 'ward' pays 2\.0"):
        cs.episode_ceilings(logs, 2, 1.0, value_max=1.5)
    with pytest.raises(DataError, match="ended after 2 step"):
        cs.episode_ceilings(logs, 3, 1.0, fixed_length=True)
    with pytest.raises(ArgumentError, match="reward_min is for confidence limits"):
        cs.episode_ceilings(logs, 2, 1.0, reward_min=0.0)
    with pytest.raises(ArgumentError, match="more than reward_max"):
        cs.episode_ceilings(logs, 2, 1.0, reward_min=2.0, confidence=0.9)
    with pytest.raises(ArgumentError, match="reward_bins says how"):
        cs.episode_ceilings(logs, 2, 1.0, reward_bins=cs.Bins(quantiles=2), ignore_rewards=True)
    with pytest.raises(ArgumentError, match="Two logs are called 'ward'"):
        cs.episode_ceilings([logs, logs], 2, 1.0)
    with pytest.raises(ArgumentError, match="Masses are exact"):
        bound_episodes([logs], EpisodeSettings(2, 1.0, confidence=0.9), [[0.5, 0.5]])
    with pytest.raises(UnknownNameError, match="There is no action 1"):
        cs.episode_ceilings(logs, 2, 1.0, actions=[0])


def test_a_single_episode_that_is_held_out_leaves_nothing():
    found = cs.episode_ceilings(short_logs([([(0, 0, 0.0)], "ended")]), 2, 1.0, confidence=0.9)
    assert found.values[0].tolist() == [2.0, 2.0]
    assert found.mean == 2.0
    assert found.summary()


def test_worlds_of_tests_are_what_they_say():
    """The optimum by search is that of the best of all policies, tried one by one, in a world that is small enough."""
    world = random_world(np.random.default_rng([1, 1]), 1)
    for state in range(world.shape[0]):
        mass = world.start[:, state, None] * world.noise
        values = [(mass * world.reward[0, state, x]).sum() / mass.sum() for x in range(world.shape[1])]
        assert world.optimum(state) == pytest.approx(max(values))
    total = sum(world.trajectories(0).values())
    assert total == pytest.approx(1.0)


def test_assumptions_name_a_known_bound_and_a_fixed_length_and_certain_returns_stay():
    logs = short_logs([([(0, 0, -0.5), (0, 1, -0.5)], "cut")] * 3)
    found = cs.episode_ceilings(logs, 2, -0.5, value_max=-0.25, fixed_length=True)
    assert "No episode pays more than -0.25 from any step on." in found.assumptions
    assert "No episode ends before the horizon." in found.assumptions
    sure = cs.episode_ceilings(logs, 2, -0.5, reward_min=-0.5, fixed_length=True, confidence=0.95)
    assert sure.values[0, 0] == -1.0  # the least that can be paid is the most
