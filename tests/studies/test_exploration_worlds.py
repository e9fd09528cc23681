"""Standard problems of exploration with a hidden gust: their tables against Gymnasium's own and against loops."""

import gymnasium as gym
import numpy as np
import pytest

from studies.field import problems


def own_table(env):
    """P[s, x, s'], the mean reward [s, x] and whether a transition ends, of an environment's own table."""
    table = env.unwrapped.P
    states, actions = len(table), len(table[0])
    chance, reward, ended = np.zeros((states, actions, states)), np.zeros((states, actions)), np.zeros(states, bool)
    for s in table:
        for x in table[s]:
            for p, after, paid, over in table[s][x]:
                chance[s, x, after] += p
                reward[s, x] += p * paid
                ended[after] |= over
    return chance, reward, ended


def mean_reward(model):
    return (model.noise[:, None, :] * model.reward).sum(axis=-1)


def test_frozen_lake_is_gymnasiums():
    chance, reward, ended = own_table(gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True))
    model = problems.frozen_lake().model
    np.testing.assert_allclose(model.transitions(), chance, atol=1e-12)
    np.testing.assert_allclose(mean_reward(model), reward, atol=1e-12)
    np.testing.assert_array_equal(model.terminal, ended)
    assert model.start[0] == 1


def test_a_gust_at_the_cliff_is_gymnasiums_move_down():
    chance, reward, ended = own_table(gym.make("CliffWalking-v1"))
    gust, lasting = 0.2, ~ended
    model = problems.cliff_walking(gust).model
    np.testing.assert_array_equal(model.terminal, ended)
    mixed = (1 - gust) * chance + gust * chance[:, [2]]
    np.testing.assert_allclose(model.transitions()[lasting], mixed[lasting], atol=1e-12)
    paid = (1 - gust) * reward + gust * reward[:, [2]]
    np.testing.assert_allclose(mean_reward(model)[lasting], paid[lasting], atol=1e-12)
    calm = problems.cliff_walking(0.0).model.optimum().values
    assert calm @ model.start == pytest.approx(-13)  # the shortest way


def test_a_calm_taxi_is_gymnasiums():
    env = gym.make("Taxi-v4")
    chance, reward, ended = own_table(env)
    model = problems.taxi(0.0).model
    lasting = ~ended
    np.testing.assert_array_equal(model.terminal, ended)
    np.testing.assert_allclose(model.transitions()[lasting], chance[lasting], atol=1e-12)
    np.testing.assert_allclose(mean_reward(model)[lasting], reward[lasting], atol=1e-12)
    np.testing.assert_allclose(model.start, env.unwrapped.initial_state_distrib)
    assert ended.sum() == 4  # the taxi and its passenger are at one of four destinations


def test_river_swim_has_its_published_chances():
    model = problems.river_swim().model
    moves = model.transitions()
    np.testing.assert_allclose(moves[2, 1, 1:4], [0.05, 0.6, 0.35])
    np.testing.assert_allclose(moves[0, 1, :2], [0.4, 0.6])
    np.testing.assert_allclose(moves[5, 1, 4:], [0.4, 0.6])
    np.testing.assert_allclose(moves[3, 0, 2], 1.0)
    assert mean_reward(model)[0, 0] == pytest.approx(0.005)
    assert mean_reward(model)[5, 1] == pytest.approx(0.6)
    greedy = model.optimum(horizon=20).greedy()
    assert (greedy[0] == 1).all()  # swimming is best at first


def test_only_one_sequence_reaches_the_goal_of_the_deep_sea():
    size = 5
    model = problems.deep_sea(size).model
    paths = np.zeros((2**size, 1))
    for number in range(2**size):
        s = 0
        for h in range(size):
            x = number >> h & 1
            paths[number] += model.reward[s, x, 0]
            s = model.next_state[s, x, 0]
        assert s == size * size
    assert (paths > 0.5).sum() == 1
    assert paths.max() == pytest.approx(1 - 0.01)
    # All of the way in calm air, less the costs, which gusts do not spare as long as one is on the diagonal.
    calm = (1 - 1 / size) ** np.arange(size + 1)
    assert model.optimum(size).values[0, 0] == pytest.approx(calm[-1] - 0.01 / size * calm[:-1].sum(), abs=1e-9)
