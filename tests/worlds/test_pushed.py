"""Cart-pole and mountain car with a hidden push, against Gymnasium's own."""

import gymnasium as gym
import numpy as np
import pytest
from population import population_ceilings

import causal_shaping as cs

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
    world, env = cs.load_world(name), gym.make(identity).unwrapped
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


def test_a_push_adds_to_the_force():
    world = cs.load_world("cart-pole", push=20)
    states, _ = states_of(world, 200)
    left, right = np.zeros(len(states), np.int64), np.ones(len(states), np.int64)
    for calm, pushed in ((right, left), (left, right)):  # 10 - 0 = -10 + 20, and mirrored
        noise = RIGHT if pushed[0] == 0 else LEFT
        assert np.allclose(step(world, states, calm, NONE).states, step(world, states, pushed, noise).states)
    car = cs.load_world("mountain-car", push=0.001)
    states, _ = states_of(car, 200)
    coast = np.ones(len(states), np.int64)
    assert np.allclose(step(car, states, coast, LEFT).states, step(car, states, coast - 1, NONE).states)


@pytest.mark.parametrize("name", NAMES)
def test_good_and_bad_see_the_push_and_random_does_not(name):
    world = cs.load_world(name)
    states, _ = states_of(world, 3000)
    for demonstrator, sees in {"good": True, "bad": True, "random": False}.items():
        beta = world.demonstrators[demonstrator](states)
        assert np.allclose(beta.sum(axis=2), 1)
        assert beta.min() >= 0.03  # every action is tried
        assert (np.abs(beta[:, LEFT] - beta[:, RIGHT]).max() > 0.8) == sees


@pytest.mark.parametrize(("name", "wish"), [("cart-pole", 1), ("mountain-car", 2)])
def test_in_the_logs_of_bad_the_wrong_action_looks_better(name, wish):
    """The mean change of velocity after an action, where `right` is right: in the logs, and under do(action)."""
    world = cs.load_world(name)
    logs = world.collect("bad", 60_000)
    states = np.stack([logs[column].to_numpy() for column in world.columns], axis=1)
    action, change = logs["action"].to_numpy(), logs["next_velocity"].to_numpy() - states[:, 1]
    where = states @ (1, 1, 150, 30) > 0 if name == "cart-pole" else np.abs(states[:, 0]) < 0.1
    where &= (states[:, 1] > 0) | (name == "cart-pole")
    seen = [change[where & (action == x)].mean() for x in (0, wish)]
    assert seen[0] > seen[1]
    chance, after = world.outcomes(states[where][:500]).probability, world.outcomes(states[where][:500]).next_states
    done = np.einsum("suk,sxuk->x", chance, after[..., 1] - states[where][:500, 1][:, None, None, None])
    assert done[0] < done[wish]


def test_seeing_the_push_helps_to_balance():
    """Mean lengths of episodes: the best linear rule without the push stands for 76 steps."""
    world = cs.load_world("cart-pole")

    def blind(states):
        return np.eye(2)[np.repeat((states @ (0, 4, 80, 15) > 0).astype(int)[:, None], 3, axis=1)]

    def seeing(states):
        return np.eye(2)[((states @ (1, 1, 150, 30))[:, None] > np.array([-20, 0, 20])).astype(int)]

    def length(rule):
        logs = world.collect(rule, 80_000, source="mine")
        return len(logs) / logs["episode"][-1].as_py()

    assert length(seeing) > length(blind) + 8
    assert length(blind) > 70
    lengths = [length(world.demonstrators[name]) for name in ("good", "bad", "random")]
    assert lengths == sorted(lengths, reverse=True)


def test_the_optimum_of_the_cart_pole_is_about_what_its_greedy_policy_earns():
    values = cs.load_world("cart-pole").optimum(grid=15)
    returns, promised = values.greedy_returns(300, seed=1)
    assert returns.mean() == pytest.approx(promised.mean(), abs=7)  # of 100; errors of 2 by grid, 1.8 by chance
    start = np.zeros((1, 4), np.float32)
    assert np.allclose(values.q_values(start)[0, 0], values.q_values(start)[0, 1])  # left and right are mirrored
    assert values(start) == pytest.approx(75, abs=3)


def test_the_optimum_of_the_mountain_car_is_about_what_its_greedy_policy_earns():
    world = cs.load_world("mountain-car")
    values, coarse = world.optimum(grid=120), world.optimum(grid=80)
    returns, promised = values.greedy_returns(300, seed=1)
    error = np.std(returns - promised) / np.sqrt(len(returns))
    assert abs(np.mean(returns - promised)) < 3 * error + 0.5
    inside = values.points[~values.terminal]
    assert np.abs(values(inside) - coarse(inside)).mean() < 1.5
    assert values.values.min() > -world.horizon + 20
    good = world.collect("good", 50_000)
    assert (
        values(world.start(np.random.default_rng(0).random((2000, 2)))).mean()
        > -len(good) / good["episode"][-1].as_py()
    )


def test_population_ceilings_of_the_mountain_car_are_never_below_its_optimum():
    world = cs.load_world("mountain-car", horizon=40)
    found = population_ceilings(world, grid=24, level=1)
    best = world.optimum(24)
    assert (found.values >= best.values - 1e-9).all()
    assert (found.values[0] - best.values[0]).max() > 1


def test_wrong_arguments_are_errors():
    with pytest.raises(cs.ArgumentError, match="push is -1"):
        cs.load_world("cart-pole", push=-1)
    with pytest.raises(cs.ArgumentError, match="mountain-car cannot be loaded with noise_sd"):
        cs.load_world("mountain-car", noise_sd=1)
