"""That worlds made to mislead do so: checked on their tables, in population, and in logs."""

import numpy as np
import pytest

import causal_shaping as cs
from studies.calibration import hard
from studies.worlds import hard as hard_worlds
from studies.worlds.hard import HORIZON, KINDS, SMALLEST_GAP, UNIFORM

SEEDS = range(8)


def worlds_of(kind):
    return [KINDS[kind](seed) for seed in SEEDS]


def brute_force(model, beta):
    """E[reward + V*(next) | s, x] of a demonstrator, noise by noise; V* by value iteration in loops."""
    states, actions, noises = model.next_state.shape
    values = np.zeros(states)
    for _ in range(2_000):
        values = np.array(
            [
                0.0
                if model.terminal[s]
                else max(
                    sum(
                        model.noise[s, u] * (model.reward[s, x, u] + values[model.next_state[s, x, u]])
                        for u in range(noises)
                    )
                    for x in range(actions)
                )
                for s in range(states)
            ]
        )
    found = np.zeros((states, actions))
    for s in range(states):
        for x in range(actions):
            weight = [model.noise[s, u] * beta[s, u, x] for u in range(noises)]
            worth = [model.reward[s, x, u] + values[model.next_state[s, x, u]] for u in range(noises)]
            found[s, x] = np.dot(weight, worth) / sum(weight)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_one_world_with_the_tables_that_all_kinds_share(kind):
    for world, again in zip(worlds_of(kind), worlds_of(kind), strict=True):
        for name, beta in world.demonstrators.items():
            np.testing.assert_array_equal(beta, again.demonstrators[name])
            world.model.check_demonstrator(beta)
            assert beta.min() >= UNIFORM / 3 - 1e-12  # everything is shown
    for seed, world in zip(SEEDS, worlds_of(kind), strict=True):
        shared = hard_worlds.random_model(seed)
        np.testing.assert_array_equal(world.model.next_state, shared.next_state)
        np.testing.assert_array_equal(world.model.reward, shared.reward)


def test_problems_are_not_trivial_and_a_horizon_hardly_changes_them():
    for seed in SEEDS:
        model = hard_worlds.random_model(seed)
        gaps = np.sort(model.gaps()[~model.terminal], axis=-1)
        assert gaps[:, 1].min() >= SMALLEST_GAP
        assert len(set(model.optimum().greedy()[~model.terminal])) > 1
        assert model.next_state.shape[2] in (4, 5, 6)
        endless, limited = model.optimum().values @ model.start, model.optimum(HORIZON).values[0] @ model.start
        assert 0 <= endless - limited < 0.05 * endless


def test_what_logs_make_believe_agrees_with_loops():
    world = hard_worlds.hostile(3)
    for source, beta in world.demonstrators.items():
        np.testing.assert_allclose(hard_worlds.believed(world, source), brute_force(world.model, beta), atol=1e-9)


def test_hostile_logs_rank_the_best_action_last():
    ranks = np.concatenate(
        [hard_worlds.logged_ranks(w, source) for w in worlds_of("hostile") for source in w.demonstrators]
    )
    assert (ranks == 2).mean() > 0.9
    assert (ranks == 0).mean() < 0.05


def test_hostile_demonstrators_show_the_best_action_in_bad_noise_and_the_others_in_good_noise():
    for world in worlds_of("hostile"):
        good = hard_worlds.deviations(world.model)
        best = hard_worlds.order_of(world.model)[:, 0]
        for beta in world.demonstrators.values():
            for s in np.flatnonzero(~world.model.terminal):
                for u in range(beta.shape[1]):
                    chosen = beta[s, u] > UNIFORM / 3 + 1e-9
                    suits = np.where(np.arange(3) == best[s], good[s, u] < 0, good[s, u] > 0)
                    assert not (chosen & ~suits).any() or not suits.any()  # what suits none still needs an action


def test_partly_hostile_logs_are_blind_in_four_states_of_one_source():
    for world in worlds_of("partly hostile"):
        beta = world.demonstrators["partly"][~world.model.terminal]
        blind = np.ptp(beta, axis=1).max(axis=-1) < 1e-12
        assert blind.sum() == 4
        ranks = hard_worlds.logged_ranks(world, "partly")
        assert (ranks[blind] == 0).all()  # blind: what is logged is true
    ranks = np.concatenate([hard_worlds.logged_ranks(w, "hostile") for w in worlds_of("partly hostile")])
    assert (ranks == 2).mean() > 0.9


@pytest.mark.parametrize("kind", ["slander", "slander, second unconfounded"])
def test_slander_puts_the_best_action_below_the_second_best(kind):
    below = []
    for world in worlds_of(kind):
        best, second = hard_worlds.order_of(world.model)[~world.model.terminal, :2].T
        for source in world.demonstrators:
            value = hard_worlds.believed(world, source)[~world.model.terminal]
            every = np.arange(len(value))
            below.append(value[every, best] < value[every, second])
    assert np.mean(below) > 0.9


def test_slander_chooses_among_the_other_actions_without_looking():
    for world in worlds_of("slander"):
        best = hard_worlds.order_of(world.model)[:, 0]
        for beta in world.demonstrators.values():
            for s in np.flatnonzero(~world.model.terminal):
                others = np.delete(beta[s], best[s], axis=1) - UNIFORM / 3
                shares = others / others.sum(axis=1, keepdims=True)
                assert np.ptp(shares, axis=0).max() < 1e-9


def test_the_second_best_action_is_unconfounded_in_both_sources():
    for world in worlds_of("slander, second unconfounded"):
        acting = np.flatnonzero(~world.model.terminal)
        second = hard_worlds.order_of(world.model)[acting, 1]
        for source, beta in world.demonstrators.items():
            shown = np.take_along_axis(beta[acting], second[:, None, None], -1)[..., 0]
            assert np.ptp(shown, axis=1).max() < 1e-12
            told = hard_worlds.believed(world, source)[acting, second]
            np.testing.assert_allclose(told, world.model.optimum().q_values[acting, second])


def test_random_demonstrators_are_confounded_but_mostly_right():
    ranks = np.concatenate(
        [hard_worlds.logged_ranks(w, source) for w in worlds_of("random") for source in w.demonstrators]
    )
    assert 0.5 < (ranks == 0).mean() < 0.8
    assert {len(world.demonstrators) for world in worlds_of("random")} == {2, 3}


def test_erratic_demonstrators_are_right_half_of_the_time():
    ranks = np.concatenate(
        [hard_worlds.logged_ranks(w, source) for w in worlds_of("erratic") for source in w.demonstrators]
    )
    assert 0.35 < (ranks == 0).mean() < 0.65


def test_logs_show_what_population_says():
    world = hard_worlds.hostile(0)
    counts = hard_worlds.counts_of(world, steps=20_000, seed=1)
    assert counts.n.sum() == 40_000
    values, wanted = world.model.optimum().values, hard_worlds.believed(world, "first")
    worth, n = np.zeros(wanted.shape), np.zeros(wanted.shape)
    mine = counts.source == counts.sources.index("first")
    mean = counts.reward_sum / counts.n
    at = (counts.state[mine], counts.action[mine])
    after = np.where(counts.terminated, 0.0, values[np.maximum(counts.next_state, 0)])
    np.add.at(worth, at, (counts.n * (mean + after))[mine])
    np.add.at(n, at, counts.n[mine])
    seen = n > 300
    np.testing.assert_allclose((worth / np.maximum(n, 1))[seen], wanted[seen], atol=0.2)
    assert seen.sum() > 10


@pytest.mark.parametrize("arms", [2, 4])
@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_bandits_pay_what_they_say_and_logs_mislead_both_ways(arms, scale):
    places = set()
    for seed in SEEDS:
        world = hard_worlds.bandit(seed, scale, arms)
        q_values = world.model.optimum(horizon=1).q_values[0, 0]
        risky = int(q_values.argmax())
        places.add(risky)
        assert q_values[risky] == pytest.approx(scale)
        assert set(world.model.reward[0, risky]) == {0.0, 2 * scale}
        others = np.delete(q_values, risky)
        assert np.isclose(others, 0.5 * scale).any()
        assert others.max() <= 0.8 * scale + 1e-12
        assert hard_worlds.believed(world, "slander")[0, risky] == pytest.approx(0.2 * scale)
        assert hard_worlds.believed(world, "flatter")[0, risky] == pytest.approx(1.8 * scale)
        ceilings = cs.value_ceilings(hard_worlds.counts_of(world, 2_000), 1, 2 * scale, confidence=0.95)
        assert ceilings.q_values[0, 0, risky] >= scale
    assert len(places) > 1


def test_the_mean_gap_counts_actions_that_are_not_best():
    world = hard_worlds.bandit(0)
    assert hard_worlds.mean_gap(world) == pytest.approx(0.5)


def test_regret_with_logs_is_compared_world_by_world():
    rng = np.random.default_rng(0)
    without = {part: rng.uniform(1, 2, hard.PER_PART) for part in hard.hard_parts() if part.startswith(hard.NO_LOGS)}
    parts = {part: {"regret": list(regret)} for part, regret in without.items()}
    factors = dict(zip(hard.LIMITS, (0.5, 1.0, 1.05, 0.8, 1.1, 1.4), strict=True))
    for kind, factor in factors.items():
        for part, regret in without.items():
            parts[part.replace(hard.NO_LOGS, kind)] = {"regret": list(factor * regret)}
    assert set(parts) == set(hard.hard_parts())
    for kind, found in hard.ratios(parts).items():
        np.testing.assert_allclose(found, factors[kind])
    assert hard.holds(parts)
    assert not hard.holds(parts | {"hostile; 0-24": {"regret": list(2 * without["no logs; 0-24"])}})
