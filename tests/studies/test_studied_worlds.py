"""Cart-pole and mountain car with a hidden push, against Gymnasium's own; optimal values on grids, and expectations."""

import gymnasium as gym
import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.worlds.dynamics import pick_rows
from studies.worlds import load
from studies.worlds.optimum import outcomes, solve
from studies.worlds.population import population_ceilings

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


def test_a_push_adds_to_the_force():
    world = load("cart-pole", push=20)
    states, _ = states_of(world, 200)
    left, right = np.zeros(len(states), np.int64), np.ones(len(states), np.int64)
    for calm, pushed in ((right, left), (left, right)):  # 10 - 0 = -10 + 20, and mirrored
        noise = RIGHT if pushed[0] == 0 else LEFT
        assert np.allclose(step(world, states, calm, NONE).states, step(world, states, pushed, noise).states)
    car = load("mountain-car", push=0.001)
    states, _ = states_of(car, 200)
    coast = np.ones(len(states), np.int64)
    assert np.allclose(step(car, states, coast, LEFT).states, step(car, states, coast - 1, NONE).states)


@pytest.mark.parametrize("name", NAMES)
def test_good_and_bad_see_the_push_and_random_does_not(name):
    world = load(name)
    states, _ = states_of(world, 3000)
    for demonstrator, sees in {"good": True, "bad": True, "random": False}.items():
        beta = world.demonstrators[demonstrator](states)
        assert np.allclose(beta.sum(axis=2), 1)
        assert beta.min() >= 0.03  # every action is tried
        assert (np.abs(beta[:, LEFT] - beta[:, RIGHT]).max() > 0.8) == sees


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


def test_the_optimum_of_the_cart_pole_is_about_what_its_greedy_policy_earns():
    values = solve(load("cart-pole"), grid=15)
    returns, promised = values.greedy_returns(300, seed=1)
    assert returns.mean() == pytest.approx(promised.mean(), abs=7)  # of 100; errors of 2 by grid, 1.8 by chance
    start = np.zeros((1, 4), np.float32)
    assert np.allclose(values.q_values(start)[0, 0], values.q_values(start)[0, 1])  # left and right are mirrored
    assert values(start) == pytest.approx(75, abs=3)


def test_the_optimum_of_the_mountain_car_is_about_what_its_greedy_policy_earns():
    world = load("mountain-car")
    values, coarse = solve(world, grid=120), solve(world, grid=80)
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
    world = load("mountain-car", horizon=40)
    found = population_ceilings(world, grid=24, level=1)
    best = solve(world, 24)
    assert (found.values >= best.values - 1e-9).all()
    assert (found.values[0] - best.values[0]).max() > 1


@pytest.fixture(scope="module")
def optimum():
    return solve(load("windy-field"), grid=8)


def test_the_optimum_is_what_its_greedy_policy_earns(optimum):
    returns, promised = optimum.greedy_returns(1500, seed=1)
    error = np.std(returns - promised) / np.sqrt(len(returns))
    assert abs(np.mean(returns - promised)) < 3 * error + 0.005
    assert error < 0.01


def test_the_optimum_hardly_moves_with_the_grid(optimum):
    coarse = solve(optimum.world, grid=4)
    inside = optimum.points[~optimum.terminal]
    assert np.abs(optimum(inside) - coarse(inside)).mean() < 0.015
    assert optimum(inside).mean() == pytest.approx(-0.464, abs=0.008)


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
    after = outcomes(world, states, nodes=9)
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


def test_wrong_arguments_are_errors():
    with pytest.raises(cs.ArgumentError, match="push is -1"):
        load("cart-pole", push=-1)
