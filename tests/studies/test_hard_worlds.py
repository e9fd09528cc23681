"""That worlds made to mislead do so: checked on their tables, in population, and in logs."""

import numpy as np
import pytest

import causal_shaping as cs
from studies.worlds import hard as hard_worlds
from studies.worlds.hard import KINDS

SEEDS = range(8)


def worlds_of(kind):
    return [KINDS[kind](seed) for seed in SEEDS]


def believed(world, source):
    """E[reward + V*(next) | s, x] in the logs of a demonstrator, in population."""
    model = world.model
    worth = model.reward + model.optimum().values[model.next_state]
    mass = model.noise[:, None, :] * world.demonstrators[source].transpose(0, 2, 1)
    return (mass * worth).sum(-1) / mass.sum(-1)


def logged_ranks(world, source):
    """Where the best action of each state that acts would stand if logs were believed: 0 is first."""
    value = believed(world, source)[~world.model.terminal]
    best = hard_worlds.order_of(world.model)[~world.model.terminal, :1]
    return (value > np.take_along_axis(value, best, -1)).sum(axis=-1)


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


def test_what_logs_make_believe_agrees_with_loops():
    world = hard_worlds.hostile(3)
    for source, beta in world.demonstrators.items():
        np.testing.assert_allclose(believed(world, source), brute_force(world.model, beta), atol=1e-9)


def test_hostile_logs_rank_the_best_action_last():
    ranks = np.concatenate([logged_ranks(w, source) for w in worlds_of("hostile") for source in w.demonstrators])
    assert (ranks == 2).mean() > 0.9
    assert (ranks == 0).mean() < 0.05


@pytest.mark.parametrize("kind", ["slander", "slander, second unconfounded"])
def test_slander_puts_the_best_action_below_the_second_best(kind):
    below = []
    for world in worlds_of(kind):
        best, second = hard_worlds.order_of(world.model)[~world.model.terminal, :2].T
        for source in world.demonstrators:
            value = believed(world, source)[~world.model.terminal]
            every = np.arange(len(value))
            below.append(value[every, best] < value[every, second])
    assert np.mean(below) > 0.9


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
        assert believed(world, "slander")[0, risky] == pytest.approx(0.2 * scale)
        assert believed(world, "flatter")[0, risky] == pytest.approx(1.8 * scale)
        ceilings = cs.value_ceilings(hard_worlds.counts_of(world, 2_000), 1, 2 * scale, confidence=0.95)
        assert ceilings.q_values[0, 0, risky] >= scale
    assert len(places) > 1
