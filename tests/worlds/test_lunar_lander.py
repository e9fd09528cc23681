"""Gymnasium's lunar lander with a hidden gust."""

import forked
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import causal_shaping as cs
from causal_shaping._registration import LUNAR_LANDER
from causal_shaping.worlds.lunar_lander import LunarLander


def make(**arguments):
    return gym.make(LUNAR_LANDER, **arguments).unwrapped


@pytest.mark.parametrize("arguments", [{}, {"reveal_noise": True}], ids=str)
def test_check_env_passes_without_a_warning(arguments):
    check_env(make(**arguments), skip_render_check=True)


def test_without_a_gust_it_is_gymnasiums_lander():
    env, own = make(gust=0.0), LunarLander()
    state, _ = env.reset(seed=3)
    assert np.array_equal(state, own.reset(seed=3)[0])
    for action in (2, 1, 2, 3, 0, 2):
        env._noise = 1  # drawn before, so that both streams go on alike
        state, reward, terminated, _, _ = env.step(action)
        expected = own.step(action)
        assert np.array_equal(state, expected[0])
        assert (reward, terminated) == (pytest.approx(expected[1]), expected[2])


def test_a_gust_moves_the_lander_the_way_it_is_called():
    env = make(reveal_noise=True)
    change = {name: [] for name in env.noises}
    for seed in range(12):
        before, info = env.reset(seed=seed)
        after = env.step(0)[0]
        change[info["noise"]].append(after[2] - before[2])
    assert np.mean(change["left"]) == pytest.approx(-np.mean(change["right"]), abs=0.005)
    assert np.mean(change["right"]) == pytest.approx(0.04, abs=0.015)
    assert np.mean(change["none"]) == pytest.approx(0, abs=0.005)


def test_equal_seeds_give_equal_logs_in_the_columns_of_other_worlds():
    env = make()
    logs = env.collect("good", 300, seed=1)
    assert logs.equals(env.collect("good", 300, seed=1))
    assert not logs.equals(env.collect("good", 300, seed=2))
    other = cs.load_world("mountain-car").collect("good", 5).schema
    assert [name for name in logs.column_names if name in other.names] == [
        *("source", "episode", "step", "action", "reward", "terminated", "truncated")
    ]
    assert all(logs.schema.field(name).type == other.field(name).type for name in ("episode", "action", "reward"))
    same = np.diff(logs["episode"].to_numpy()) == 0
    assert np.array_equal(logs["next_x"].to_numpy()[:-1][same], logs["x"].to_numpy()[1:][same])
    assert logs["truncated"][-1].as_py() or logs["terminated"][-1].as_py()


def test_the_good_land_and_what_they_do_depends_on_the_gust():
    env = make(reveal_noise=True)
    returns, shares = {}, np.zeros((3, 4))
    for name in env.demonstrators:
        logs = env.collect(name, 2500, seed=0)
        returns[name] = logs["reward"].to_numpy().sum() / (logs["episode"][-1].as_py() + 1)
    assert returns["good"] > returns["bad"]
    assert returns["good"] > returns["random"] + 100
    _, info = env.reset(seed=0)
    for _ in range(1500):
        noise = env.noises.index(info["noise"])
        action, _, _, terminated, truncated, info = env.see("good")
        shares[noise, action] += 1
        if terminated or truncated:
            _, info = env.reset()
    shares /= shares.sum(axis=1, keepdims=True)
    assert shares[0, 3] > shares[2, 3] + 0.02  # fires right more often when blown to the left
    assert shares[2, 1] > shares[0, 1] + 0.02


def test_errors_say_what_is_wrong():
    env = make()
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.see("good")
    env.reset(seed=0)
    with pytest.raises(cs.UnknownNameError, match="It has good, bad, random"):
        env.see("nobody")
    with pytest.raises(cs.ArgumentError, match="There is no action 4"):
        env.step(4)


def test_without_box2d_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['Box2D'] = None\n"
        "import gymnasium, causal_shaping as cs\n"
        "try: gymnasium.make('causal_shaping/LunarLander-v0')\n"
        "except cs.MissingExtraError as error: print(error)"
    )
    found = forked.run(code, prepared=forked.REQUIRED)
    assert "causal-shaping[worlds]" in found.stdout
