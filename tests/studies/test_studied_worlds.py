"""Cart-pole and mountain car with a hidden push, against Gymnasium's own; optimal values on grids, and expectations."""

import gymnasium as gym
import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.worlds.dynamics import pick_rows
from studies.field.fitted import agents
from studies.worlds import load
from studies.worlds.optimum import outcomes, solve

NAMES = ("cart-pole", "mountain-car")
LEFT, NONE, RIGHT = range(3)


def states_of(world, count, seed=0):
    """States that the logs of a random demonstrator visit, and what was done there."""
    logs = world.collect("random", count, seed=seed)
    return np.stack([logs[name].to_numpy() for name in world.columns], axis=1), logs["action"].to_numpy()


def step(world, states, actions, noise):
    return world.step(states, actions, np.full(len(states), noise), np.zeros((len(states), 0)))


@pytest.mark.parametrize(("name", "identity"), [("cart-pole", "CartPole-v1"), ("mountain-car", "MountainCar-v0")])
def test_without_a_push_a_step_is_that_of_gymnasium(name, identity):
    world, env = load(name), gym.make(identity).unwrapped
    states, actions = states_of(world, 400)
    states[200:] = world.start(np.random.default_rng(0).random((200, world.start_draws)))
    moved = step(world, states, actions, NONE)
    env.reset(seed=0)
    for i in range(len(states)):
        env.state, env.steps_beyond_terminated = states[i].astype(np.float64), None
        after, reward, terminated, _, _ = env.step(actions[i])
        assert np.allclose(moved.states[i], after, atol=1e-6)
        assert (moved.reward[i], moved.terminated[i]) == (reward, terminated)
    assert moved.terminated.any()


@pytest.mark.parametrize(("name", "wish"), [("cart-pole", 1), ("mountain-car", 2)])
def test_in_the_logs_of_bad_the_wrong_action_looks_better(name, wish):
    """The mean change of velocity after an action, where `right` is right: in the logs, and under do(action)."""
    world = load(name)
    logs = world.collect("bad", 60_000)
    states = np.stack([logs[column].to_numpy() for column in world.columns], axis=1)
    action, change = logs["action"].to_numpy(), logs["next_velocity"].to_numpy() - states[:, 1]
    where = states @ (1, 1, 150, 30) > 0 if name == "cart-pole" else np.abs(states[:, 0]) < 0.1
    where &= (states[:, 1] > 0) | (name == "cart-pole")
    seen = [change[where & (action == x)].mean() for x in (0, wish)]
    assert seen[0] > seen[1]
    after = outcomes(world, states[where][:500])
    done = np.einsum(
        "suk,sxuk->x", after.probability, after.next_states[..., 1] - states[where][:500, 1][:, None, None, None]
    )
    assert done[0] < done[wish]


def test_the_optimum_is_what_its_greedy_policy_earns(monkeypatch):
    monkeypatch.setattr(agents, "EPISODES", 1500)
    world = load("windy-field")
    optimum, h = solve(world, grid=8), iter(range(world.horizon))
    returns = agents.episodes(world, lambda states: optimum.q_values(states, next(h)).argmax(axis=1))
    draws = np.random.default_rng(agents.EVALUATION_SEED).random((1500, world.start_draws))
    away = returns - optimum(world.start(draws))
    error = np.std(away) / np.sqrt(len(away))
    assert abs(np.mean(away)) < 3 * error + 0.005
    assert error < 0.01


def test_the_values_of_a_field_without_noise_are_those_of_its_grid_world():
    """One grid point to a cell, at its centre; walls cut legs at the cell's edge, so that only inner moves agree."""
    world = cs.load_world("lavacross-easy", horizon=3)
    field = cs.WindyField(noise_sd=0.0, horizon=3)
    values = solve(field, grid=3)
    table = world.model.optimum(horizon=3).values
    for cell in ((6, 4), (5, 3), (2, 2), (6, 5)):
        assert values(np.array(cell, float)) == pytest.approx(table[0, world.state_at(*cell)], abs=1e-6)


@pytest.mark.parametrize("name", [*NAMES, "windy-field"])
def test_outcomes_average_what_steps_do(name):
    """Expectations by nodes against the mean of many random steps, in states that the logs visit."""
    world = load(name)
    logs = world.collect(next(iter(world.demonstrators)), 400, seed=2)
    states = np.stack([logs[column].to_numpy() for column in world.columns], axis=1)[::40]
    after = outcomes(world, states)
    assert np.allclose(after.probability.sum(axis=(1, 2)), 1)
    rng, draws = np.random.default_rng(0), 4000
    s, x = (np.repeat(part.ravel(), draws) for part in np.indices((len(states), len(world.actions))))
    noises = pick_rows(world.noise(states[s]), rng.random(len(s)))
    moved = world.step(states[s], x, noises, rng.random((len(s), world.step_draws)))
    shape = (len(states), len(world.actions), draws)

    def expected(values):
        return np.einsum("suk,sxuk->sx", after.probability, values)

    assert np.abs(expected(after.reward) - moved.reward.reshape(shape).mean(axis=2)).max() < 0.2
    assert np.abs(expected(after.reward) - moved.reward.reshape(shape).mean(axis=2)).mean() < 0.02
    ended = moved.terminated.reshape(shape).mean(axis=2)
    assert np.abs(expected(after.terminated) - ended).mean() < 0.02
    for i in range(len(world.columns)):
        scale = float(world.high[i] - world.low[i])
        mean = moved.states[:, i].reshape(shape).mean(axis=2)
        assert np.abs(expected(after.next_states[..., i]) - mean).max() < 0.02 * scale
