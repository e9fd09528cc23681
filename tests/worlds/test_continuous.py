"""Worlds with real coordinates: one step function behind logs, environments and expectations."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

import causal_shaping as cs
from causal_shaping._registration import CONTINUOUS_ENVIRONMENTS
from causal_shaping.worlds.continuous_environments import ContinuousEnv

NAMES = cs.list_worlds(continuous=True)


def columns_of(table, names):
    return np.stack([table[name].to_numpy() for name in names], axis=1)


class Replay:
    """A stream that gives the draws of a list, whoever asks, and keeps those of a real one."""

    def __init__(self, rng):
        self.rng, self.kept = rng, []

    def random(self, size):
        self.kept.append(self.rng.random(size))
        return self.kept[-1]


def test_the_ids_are_those_people_rely_on():
    assert set(CONTINUOUS_ENVIRONMENTS) == set(NAMES)
    assert CONTINUOUS_ENVIRONMENTS["windy-field"] == "causal_shaping/WindyField-v0"


@pytest.mark.parametrize("name", NAMES)
def test_both_checkers_pass_without_a_warning(name):
    env = gym.make(CONTINUOUS_ENVIRONMENTS[name]).unwrapped
    check_env(env, skip_render_check=True)
    check_env_for_sb3(env)
    assert env.observation_space.dtype == np.float32
    assert not hasattr(env, "space")


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_logs_and_fewer_steps_their_beginning(name):
    world = cs.load_world(name)
    for demonstrator in world.demonstrators:
        logs = world.collect(demonstrator, 3000, seed=4)
        assert logs.num_rows == 3000
        assert logs.equals(world.collect(demonstrator, 3000, seed=4))
        assert not logs.equals(world.collect(demonstrator, 3000, seed=5))
        fewer = world.collect(demonstrator, 777, seed=4)
        rest = [column for column in logs.column_names if column != "truncated"]
        assert fewer.select(rest).equals(logs.select(rest).slice(0, 777))
        assert fewer["truncated"][-1].as_py() or fewer["terminated"][-1].as_py()


@pytest.mark.parametrize("name", NAMES)
def test_logs_are_whole_episodes_in_order(name):
    world = cs.load_world(name)
    logs = world.collect(next(iter(world.demonstrators)), 5000, seed=1)
    next_columns = [f"next_{column}" for column in world.columns]
    assert logs.column_names == [
        *("source", "episode", "step", *world.columns, "action", "reward", *next_columns, "terminated", "truncated")
    ]
    states, followers = columns_of(logs, world.columns), columns_of(logs, next_columns)
    episode, step = logs["episode"].to_numpy(), logs["step"].to_numpy()
    ended = logs["terminated"].to_numpy() | logs["truncated"].to_numpy()
    same = episode[1:] == episode[:-1]
    assert (np.diff(episode)[~same] == 1).all()
    assert (step[1:][same] == step[:-1][same] + 1).all()
    assert (step[1:][~same] == 0).all()
    assert np.array_equal(followers[:-1][same], states[1:][same])
    assert np.array_equal(ended[:-1], ~same)
    assert ended[-1]
    assert not (logs["terminated"].to_numpy() & logs["truncated"].to_numpy()).any()
    assert step.max() < world.horizon
    assert (
        logs["truncated"].to_numpy()[:-1] == ((step == world.horizon - 1) & ~logs["terminated"].to_numpy())[:-1]
    ).all()
    rewards = logs["reward"].to_numpy()
    assert rewards.min() >= world.reward_min - 1e-12
    assert rewards.max() <= world.reward_max + 1e-12
    assert (states >= world.low).all()
    assert (states <= world.high).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_takes_the_steps_of_the_logs(name):
    """What `collect` drew for an episode, handed to an environment, gives the same episode."""
    env = gym.make(CONTINUOUS_ENVIRONMENTS[name]).unwrapped
    world, demonstrator = env.world, next(iter(env.world.demonstrators))
    stream = Replay(np.random.default_rng(3))
    rows = world._watch(stream, world.demonstrator(demonstrator))
    start, *drawn = stream.kept
    for episode in (0, 5, 900):
        mine = np.flatnonzero(rows["episode"] == episode)
        draws = [start[episode]]
        for h in range(len(mine)):
            alive = rows["episode"][rows["step"] == h]  # the order in which they were drawn
            place = int(np.flatnonzero(alive == episode)[0])
            draws += [np.atleast_1d(part[place]) for part in drawn[3 * h : 3 * h + 3]]
        env.np_random = Recorded(np.concatenate(draws))
        state, _ = env.reset()
        for row in mine:
            assert np.array_equal(state, rows["state"][row])
            action, state, reward, terminated, truncated, _ = env.see(demonstrator)
            assert np.array_equal(state, rows["next_state"][row])
            found = (action, reward, terminated, truncated)
            assert found == tuple(rows[name][row] for name in ("action", "reward", "terminated", "truncated"))


class Recorded:
    """A stream of uniforms that were drawn before."""

    def __init__(self, draws):
        self.draws, self.next = draws, 0

    def random(self, size):
        count = int(np.prod(size))
        self.next += count
        return self.draws[self.next - count : self.next].reshape(size)


def test_the_noise_is_hidden_and_drawn_anew():
    env = gym.make(CONTINUOUS_ENVIRONMENTS["windy-field"], noise_sd=0.0)
    assert env.reset(seed=0)[1] == {}
    reached = set()
    for seed in range(30):
        env.reset(seed=seed, options={"state": (2.0, 3.0)})
        after, *_, info = env.step(3)
        assert info == {}
        reached.add(tuple(after.round(6).tolist()))
    assert reached == {(3.0, 4.0), (3.0, 3.0)}  # wind to the south, and none


def test_a_step_after_the_end_and_a_wrong_action_are_errors():
    env = gym.make(CONTINUOUS_ENVIRONMENTS["windy-field"]).unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(cs.ArgumentError, match="There is no action 5"):
        env.step(5)
    with pytest.raises(cs.ArgumentError, match="cannot start"):
        env.reset(options={"state": (4.0, 3.0)})  # lava
    with pytest.raises(cs.UnknownNameError, match="It has good, bad, random"):
        env.world.collect("nobody", 10)
    with pytest.raises(cs.ArgumentError, match="noise_sd is -1"):
        cs.load_world("windy-field", noise_sd=-1)
    with pytest.raises(cs.ArgumentError, match=r"takes no noise=\. Did you mean noise_sd=\?"):
        cs.load_world("windy-field", noise=1)
    with pytest.raises(
        cs.ArgumentError, match=r"load_world\('lavacross-easy'\) takes no noise_sd=\. It takes name, coins"
    ):
        cs.load_world("lavacross-easy", noise_sd=1)
    with pytest.raises(cs.UnknownNameError, match="no world with real coordinates"):
        ContinuousEnv("lavacross-easy")
    with pytest.raises(cs.ArgumentError, match="source="):
        env.world.collect(lambda states: np.full((len(states), 5, 5), 0.2), 10)
