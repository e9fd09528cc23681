"""The states of worlds of tables as numbers: what an environment shows is what the logs hold."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from models import KINDS as WORLDS

import causal_shaping as cs
from causal_shaping._registration import ENVIRONMENTS
from causal_shaping.logs.transitions import read_transitions
from studies.worlds.observations import KINDS, observations, observed_logs


def load(name, coins):
    return cs.load_world(name) if name == "walking-robot" else cs.load_world(name, coins=coins)


def make(name, coins, **arguments):
    return gym.make(ENVIRONMENTS[name], **({} if name == "walking-robot" else {"coins": coins}), **arguments).unwrapped


def shown_in(table, prefix=""):
    """Read the observations of a table of logs: [rows, *shape]."""
    if prefix + "observation" in table.column_names:
        return np.array(table[prefix + "observation"].to_pylist())
    names = table.column_names[3 : table.column_names.index("action")]
    return np.stack([table[prefix + name].to_numpy() for name in names], axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "coins"), [pair for pair in WORLDS if "maze" not in pair[0] or pair[1] != "once"])
def test_different_states_look_different(name, coins, kind):
    seen = observations(load(name, coins), kind)
    assert len(np.unique(seen.reshape(len(seen), -1), axis=0)) == len(seen)


@pytest.mark.parametrize(("name", "coins"), [pair for pair in WORLDS if "maze" not in pair[0] or pair[1] != "once"])
def test_images_are_those_of_minigrid(name, coins):
    world, env = load(name, coins), make(name, coins)
    for label, image in zip(world.states, observations(world, "image"), strict=True):
        env.place(label)
        assert np.array_equal(env.image(), image)


@pytest.mark.parametrize(("name", "coins"), [("walking-robot", "standing"), ("lavacross-hard", "once")])
def test_the_environment_shows_what_the_logs_hold(name, coins):
    world, env = load(name, coins), make(name, coins, observation="image")
    check_env(env, skip_render_check=True)
    logs = world.collect(next(iter(world.demonstrators)), 200, seed=0)
    table = observed_logs(world, logs, "image")
    assert table.num_rows == 200
    states, followers = shown_in(table), shown_in(table, "next_")
    for row in range(0, 200, 7):
        env.reset(seed=0)
        for number, shown in ((logs.state[row], states[row]), (logs.next_state[row], followers[row])):
            env.place(world.states[number])
            assert np.array_equal(env.observe(), shown)
            assert env.observe() in env.observation_space


def test_a_vector_has_a_coordinate_for_each_coin():
    world = cs.load_world("lavacross-hard", coins="once")
    seen = observations(world, "vector")
    assert seen.shape[1] == 2 + len(world.grid.coins) > 3
    for label, vector in zip(world.states, seen.astype(int), strict=True):
        assert tuple(vector[:2]) == label[:2]
        assert sum(bit << i for i, bit in enumerate(vector[2:])) == label[2]
    table = observed_logs(world, world.collect("good", 1000), "vector")
    coins = [f"coin_{x}_{y}" for x, y in world.grid.coins]
    assert table.column_names[3 : 5 + len(coins)] == ["x", "y", *coins]
    first = table["step"].to_numpy() == 0
    assert all((table[name].to_numpy()[first] == 1).mean() > 0.9 for name in coins)


def test_labels_and_vectors_are_read_as_transitions():
    world = cs.load_world("lavacross-hard", coins="once")
    logs = world.collect("good", 500)
    labels = read_transitions(logs)
    vectors = read_transitions(
        observed_logs(world, logs, "vector"), state=["x", "y", *(f"coin_{x}_{y}" for x, y in world.grid.coins)]
    )
    assert labels.shape == (3,)
    assert np.array_equal(labels.observations[labels.state], [world.states[s] for s in logs.state])
    assert np.array_equal(vectors.observations[vectors.state], observations(world, "vector")[logs.state])
    assert set(vectors.actions) == set(labels.actions)


def test_logs_of_another_world_are_refused():
    world = cs.load_world("lavacross-easy")
    with pytest.raises(cs.ArgumentError, match="other states or actions than lavacross-easy"):
        observed_logs(world, cs.load_world("walking-robot").collect("competent", 5), "vector")
    with pytest.raises(cs.ArgumentError, match="observation"):
        observations(world, "pixels")
