"""What is measured, against independent computations."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import causal_shaping as cs
from studies.paper.materials import Materials
from studies.paper.metrics import (
    deployed_facts,
    policy_facts,
    potential_facts,
    returns_of,
    run_facts,
    steps_until,
)

EASY = cs.load_world("lavacross-easy")
HARD = cs.load_world("lavacross-hard")


@pytest.mark.parametrize("coins", ["standing", "once"])
def test_exact_returns_are_those_of_policy_evaluation(coins):
    world = cs.load_world("lavacross-maze", coins=coins)
    policies = np.random.default_rng(0).integers(5, size=(6, len(world.states)))
    expected = [world.model.evaluate(policy, world.horizon).values[0] @ world.model.start for policy in policies]
    np.testing.assert_allclose(returns_of(world.model, policies, world.horizon), expected, atol=1e-12)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=8), st.sampled_from([0.25, 0.5, 2.0]))
def test_the_steps_until_are_the_first_from_which_on_all_reach(returns, target):
    checkpoints = np.arange(1, len(returns) + 1) * 10
    good = [at for i, at in enumerate(checkpoints) if all(value >= target for value in returns[i:])]
    assert steps_until(checkpoints, np.array(returns), target) == (good[0] if good else None)


def test_the_optimal_policy_scores_one_and_the_scale_starts_at_random():
    materials = Materials(EASY, 100, seed=0)
    best = EASY.model.optimum().greedy()
    facts = policy_facts(materials, best)
    assert (facts["argmax_match"], facts["optimal"], facts["score"]) == (1.0, 1.0, pytest.approx(1.0))
    lowest, highest = materials.scale
    logs = EASY.collect("random", 200_000, seed=1)
    assert np.bincount(logs.episode, logs.reward).mean() == pytest.approx(lowest, abs=0.02)
    assert highest > lowest


def test_deploying_the_optimum_costs_nothing_and_standing_still_costs_its_gap():
    materials = Materials(HARD, 100, seed=0)
    best = HARD.model.optimum().greedy()
    assert deployed_facts(materials, best, 1000, "steps")["regret"] == pytest.approx(0, abs=1e-9)
    still = HARD.actions.index("still")
    policy = np.full(len(HARD.states), still, dtype=np.int32)
    facts = deployed_facts(materials, policy, 1000, "steps")
    assert facts["regret"] == pytest.approx(1000 * HARD.model.start @ HARD.model.gaps()[:, still])
    assert facts["episodes"] == 1000 // HARD.horizon
    assert facts["curve"][-1] == pytest.approx(facts["regret"])
    episodes = deployed_facts(materials, policy, 1000, "episodes")
    assert (episodes["episodes"], episodes["steps"]) == (1000, 1000 * HARD.horizon)
    assert episodes["regret"] == pytest.approx(HARD.horizon * facts["regret"])


def test_the_expected_regret_of_a_deployed_policy_is_what_episodes_come_to():
    """The gaps along simulated episodes of a demonstrator that acts at random, on average over steps."""
    policy = np.random.default_rng(4).integers(5, size=len(EASY.states)).astype(np.int32)
    beta = np.broadcast_to(np.eye(5)[policy][:, None], (len(EASY.states), len(EASY.noises), 5))
    logs = EASY.collect(beta, 200_000, source="policy")
    mean_gap = EASY.model.gaps()[logs.state, logs.action].mean()
    facts = deployed_facts(Materials(EASY, 100, seed=0), policy, 1000, "steps")
    assert facts["regret"] == pytest.approx(1000 * mean_gap, rel=0.02)


def test_the_facts_of_a_run_are_its_own():
    run = cs.train(EASY, None, learner="q-ucb-shaping", steps=4_000, seed=3, checkpoints=range(400, 4001, 400))
    facts = run_facts(Materials(EASY, 100, seed=0), run)
    assert facts["regret"] == run.step_regret[-1] == facts["curve"][-1]
    assert facts["policy"] == run.policy.tolist()
    best = EASY.model.optimum()
    alive = ~EASY.model.terminal
    chosen = best.q_values[np.arange(len(EASY.states)), run.policy]
    assert facts["optimal"] == np.mean(chosen[alive] >= best.values[alive] - 1e-3)
    tenth = len(run.returns) // 10
    assert facts["mean_return"] == pytest.approx(run.returns[-tenth:].mean())


@pytest.mark.parametrize("name", ["zero", "paper", "avg", "joint", "joint-capped", "floor", "alone-bad", "optimum"])
def test_the_facts_of_a_potential_count_what_lies_on_the_wrong_side(name):
    materials = Materials(HARD, 20_000, seed=2)
    facts = potential_facts(materials, name)
    best = HARD.model.optimum() if name == "joint-capped" else HARD.model.optimum(HARD.horizon)
    truth = dict(zip(HARD.states, best.values if name == "joint-capped" else best.values[0], strict=True))
    found = materials.potential(name)
    if name == "paper":
        assert facts["guaranteed"] is False
        assert facts["verdict"]
        assert facts["violations_all_steps"] is not None
    values = found.values if found.values.ndim == 1 else found.values[0]
    wrong, distances = 0, []
    for label, value in zip(found.space.states, values, strict=True):
        state = HARD.space.state_position(label)
        if HARD.model.terminal[state]:
            continue
        off = truth[label] - value if name == "floor" else value - truth[label]
        wrong += off < -1e-9
        if HARD.model.start[state] > 0:
            distances.append(abs(off))
    assert facts["violations"] == wrong
    assert facts["mean_distance"] == pytest.approx(np.mean(distances))
    assert facts["largest_distance"] == pytest.approx(np.max(distances))
    assert facts["states"] == sum(~HARD.model.terminal)


def test_the_optimum_is_its_own_potential_and_zero_says_nothing():
    materials = Materials(EASY, 5_000, seed=0)
    assert potential_facts(materials, "optimum")["violations_stationary"] == 0
    zero = potential_facts(materials, "zero")
    assert (zero["correlation"], zero["verdict"], zero["guaranteed"]) == (None, "", None)
    assert potential_facts(materials, "joint")["verdict"]
