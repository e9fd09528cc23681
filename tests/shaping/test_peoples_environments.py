"""Environments as people have them: parts, real-valued actions, the vectors of Stable-Baselines3."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor
from walk import Walk

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, AssumptionWarning, ShapingWarning

ID = "causal_shaping/LavaCrossEasy-v0"
EASY = cs.load_world("lavacross-easy")
PHI = cs.Potential(np.random.default_rng(0).normal(size=len(EASY.states)), EASY, discount=0.9)

# Observations of several parts --------------------------------------------------------------------


class Parts(gym.ObservationWrapper):
    """Taxi, whose observation is the number of the state, as its parts: row, column, passenger, goal."""

    observation_space = gym.spaces.MultiDiscrete([5, 5, 5, 4])

    def __init__(self):
        super().__init__(gym.make("Taxi-v4"))

    def observation(self, observation):
        return np.array(list(self.unwrapped.decode(observation)))


def taxi_potential():
    names = ["row", "column", "passenger", "goal"]
    states = [tuple(map(int, parts)) for parts in np.ndindex(5, 5, 5, 4)]
    return cs.Potential(np.random.default_rng(1).normal(size=500), cs.Space(states, range(6), names))


def test_observations_of_several_numbers_are_states():
    phi, env = taxi_potential(), cs.ShapeReward(Parts(), taxi_potential(), record=True)
    seen, info = env.reset(seed=0)
    for _ in range(50):
        before = phi(tuple(seen.tolist()))
        seen, reward, *_, info = env.step(env.action_space.sample(info["action_mask"]))
        assert reward == pytest.approx(info["unshaped_reward"] + phi(tuple(seen.tolist())) - before)
    assert set(env.logs().space.states) == set(phi.space.states)
    vector = cs.VectorShapeReward(SyncVectorEnv([Parts] * 2), phi)
    vector.reset(seed=0)
    assert np.isfinite(vector.step(np.array([0, 1]))[1]).all()
    assert cs.check_potential(Parts(), phi).largest_error < 1e-9


def test_observations_of_another_number_of_parts_are_refused():
    space = cs.Space([(0, 0), (0, 1)], range(6), ["row", "column"])
    with pytest.raises(ArgumentError, match=r"MultiDiscrete.* cannot be states made of row, column"):
        cs.ShapeReward(Parts(), cs.Potential.zero(space))


# Real-valued actions ------------------------------------------------------------------------------


def angle_potential(**options):
    """A potential of a pendulum's cosine, sine and speed, each cut at 0."""
    columns = ("cosine", "sine", "speed")
    bins = {name: cs.Bins(edges=(0.0,)) for name in columns}
    space = cs.Space(list(np.ndindex(2, 2, 2)), ["left", "right"], columns, bins=bins)
    return cs.Potential(np.arange(8.0), space, discount=0.9, **options)


def test_real_valued_actions_suit_a_potential_that_says_nothing_about_actions():
    phi, env = angle_potential(), cs.ShapeReward(gym.make("Pendulum-v1"), angle_potential())
    seen, _ = env.reset(seed=0)
    before = phi(tuple((seen >= 0).astype(int).tolist()))
    seen, reward, *_, info = env.step(np.array([0.5], dtype=np.float32))
    after = phi(tuple((seen >= 0).astype(int).tolist()))
    assert reward == pytest.approx(info["unshaped_reward"] + 0.9 * after - before)
    vector = cs.VectorShapeReward(gym.make_vec("Pendulum-v1", num_envs=2), phi)
    vector.reset(seed=0)
    assert vector.step(np.zeros((2, 1), dtype=np.float32))[1].shape == (2,)


def test_the_check_plays_real_valued_actions_by_its_seed():
    found = [
        cs.check_potential(gym.make("Pendulum-v1"), angle_potential(), episodes=2, seed=seed) for seed in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]
    assert found[0].truncated == 2


@pytest.mark.parametrize("options", [{"assumptions": ("It is a ceiling.",)}, {"kind": "ceiling"}, {}])
def test_real_valued_actions_are_refused_where_actions_matter(options):
    more = {} if options else {"record": True}
    with pytest.raises(ArgumentError, match="only discrete actions are supported"):
        cs.ShapeReward(gym.make("Pendulum-v1"), angle_potential(**options), **more)
    with pytest.raises(ArgumentError, match="only discrete actions are supported"):
        cs.ShapeReward(gym.make("Pendulum-v1"), angle_potential(), actions=["left", "right"])


# The vectors of Stable-Baselines3 -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "count", "time_limit", "make"),
    [
        (DummyVecEnv, 3, "bootstrap", cs.ShapeReward),
        (DummyVecEnv, 3, "terminal", cs.VectorShapeReward),
        (SubprocVecEnv, 1, "bootstrap", cs.ShapeReward),
    ],
)
def test_a_vector_of_stable_baselines_pays_what_its_parts_do(kind, count, time_limit, make):
    options = {"time_limit": time_limit, "record": True}
    inner = make_vec_env(f"causal_shaping:{ID}", n_envs=count, seed=5, vec_env_cls=kind)
    vector = make(inner, PHI, **options)
    assert isinstance(vector, VecEnv)
    parts = [cs.ShapeReward(gym.make(ID), PHI, **options) for _ in range(count)]
    seen = vector.reset()
    assert seen.tolist() == [part.reset(seed=5 + i)[0] for i, part in enumerate(parts)]
    rng, ended = np.random.default_rng(0), 0
    for _ in range(120):
        actions = rng.integers(5, size=count)
        seen, rewards, dones, infos = vector.step(actions)
        for i, part in enumerate(parts):
            following, reward, terminated, truncated, info = part.step(int(actions[i]))
            assert rewards[i] == pytest.approx(reward, abs=1e-6)  # single precision
            assert infos[i]["shaping"] == pytest.approx(info["shaping"])
            assert dones[i] == (terminated or truncated)
            if dones[i]:
                ended += 1
                assert infos[i]["shaped_return"] == pytest.approx(info["shaped_return"], abs=1e-5)
                following = part.reset()[0]
            assert seen[i] == following
    assert ended > 3 * count
    assert vector.logs().reward.sum() == pytest.approx(sum(part.logs().reward.sum() for part in parts))
    assert (vector.potential, vector.discount, vector.monitor) == (PHI, 0.9, None)
    vector.close()


def test_an_agent_of_stable_baselines_trains_on_a_shaped_vector_with_ceilings():
    counts = cs.count([EASY.collect(name, 5_000) for name in EASY.demonstrators])
    phi = cs.value_ceilings(counts, 20, -0.1, support="any", reward_min=-1.1).potential(step_indexed=False)
    vector = cs.ShapeReward(VecMonitor(DummyVecEnv([lambda: gym.make(ID)] * 2)), phi)
    A2C("MlpPolicy", vector, seed=0, device="cpu").learn(60)
    assert vector.monitor.steps == 60


def test_a_vector_of_stable_baselines_is_matched_with_the_potential():
    vector = make_vec_env(ID, n_envs=2)
    with pytest.raises(ArgumentError, match="is of other states"):
        cs.ShapeReward(vector, cs.Potential.zero(cs.load_world("walking-robot")))
    by_step = cs.Potential(np.zeros((3, len(EASY.states))), EASY)
    with pytest.warns(ShapingWarning, match="has 3 steps, but an episode lasts up to 20") as told:
        cs.ShapeReward(vector, by_step)
    assert told[0].filename == __file__


def test_actions_that_ceilings_exclude_are_refused_in_a_vector_of_stable_baselines():
    space = cs.Space(range(6), range(3), admissible={0: [0, 1]})
    phi = cs.Potential(np.zeros(6), space, assumptions=("It is a ceiling.",))
    vector = cs.ShapeReward(DummyVecEnv([Walk] * 2), phi)
    vector.reset()
    with pytest.raises(ArgumentError, match="Action 2 is not admissible in state 0"):
        vector.step(np.array([0, 2]))


def test_a_vector_of_stable_baselines_compares_what_its_environments_admit():
    space = cs.Space(range(500), range(6)).restricted(gym.make("Taxi-v4"))
    wrong = cs.Space(range(500), range(6), admissible={state: range(1, 6) for state in range(500)})
    for states, refused in ((space, False), (wrong, True)):
        phi = cs.Potential(np.zeros(500), states, assumptions=("It is a ceiling.",))
        vector = cs.ShapeReward(VecMonitor(DummyVecEnv([lambda: gym.make("Taxi-v4")] * 8)), phi)
        vector.seed(0)
        if refused:
            with pytest.raises(ArgumentError, match=r"In state \d+ the environment admits 0"):
                vector.reset()
        else:
            vector.reset()


def test_a_vector_of_stable_baselines_warns_of_contradicted_ceilings():
    low = cs.Potential(np.full(16, -3.0), cs.Space(range(16), range(4)), kind="ceiling", reward_min=0.0, reward_max=1.0)
    vector = cs.ShapeReward(DummyVecEnv([lambda: gym.make("FrozenLake-v1")] * 2), low)
    vector.reset()
    with pytest.warns(AssumptionWarning, match="The agent earns more than the ceilings allow") as told:
        play(vector, 200)
    assert len(told) == 1


def play(vector, steps):
    for _ in range(steps):
        vector.step(np.array([1, 2]))


class Shifted(gym.RewardWrapper):
    """Shaping by hand that forgets to leave out the end."""

    def step(self, action):
        *rest, reward, terminated, truncated, info = self.env.step(action)
        return *rest, reward + 1.0, terminated, truncated, info | {"unshaped_reward": reward}


def test_the_check_plays_the_first_environment_of_a_vector_of_stable_baselines():
    vector = make_vec_env(ID, n_envs=2)
    found = cs.check_potential(vector, PHI, episodes=20, seed=3)
    assert (found.episodes, found.terminated + found.truncated, found.unseen) == (20, 20, 0.0)
    assert found.terminated * found.truncated > 0
    assert found.largest_error < 1e-5


def test_the_check_finds_wrong_shaping_inside_a_vector_of_stable_baselines():
    right = make_vec_env(ID, n_envs=2, wrapper_class=cs.ShapeReward, wrapper_kwargs={"potential": PHI})
    assert cs.check_potential(right, PHI, shaped=True).steps > 10
    with pytest.raises(ArgumentError, match="Shaping does not telescope"):
        cs.check_potential(make_vec_env(ID, n_envs=2, wrapper_class=Shifted), PHI, shaped=True)


# Ends, and copies -------------------------------------------------------------------------------------------


def test_a_copy_of_a_wrapper_goes_on_alone():
    env = cs.ShapeReward(gym.make("FrozenLake-v1"), cs.Potential(np.arange(16.0), cs.Space(range(16), range(4))))
    env.reset(seed=0)
    other = copy.deepcopy(env)
    assert [env.step(action)[1] for action in (1, 1)] == [other.step(action)[1] for action in (1, 1)]


@pytest.mark.parametrize("options", [{"record": True}, {}])
def test_a_step_after_the_end_is_the_business_of_the_environment(options):
    space = cs.Space(range(6), range(3), admissible={0: [0, 1]}, complete=False)
    phi = cs.Potential(np.ones(6), space, kind="ceiling", reward_max=0.0, reward_min=-1.0)
    env = cs.ShapeReward(Walk(), phi, **options)
    env.reset(seed=0)
    while not env.step(1)[2]:
        pass
    env.unwrapped.place = 3
    assert np.isfinite(env.step(1)[1])
