"""Stable-Baselines3 trains on shaped rewards, which differ from the world's by the telescoped potential."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import causal_shaping as cs

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
ID = "causal_shaping/LavaCrossEasy-v0"
DISCOUNT = 0.97


class Differences(BaseCallback):
    """Keeps, of every episode, its shaped less its unshaped discounted return, less what the potential at both ends
    makes of it; whether it was cut; and what it earned."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def _init_callback(self):
        self.found, self.cut, self.earned = [], set(), []
        self.sums, self.first = np.zeros(self.training_env.num_envs), None
        self.h = np.zeros_like(self.sums)

    def _on_step(self):
        self.first = np.array(self.model._last_obs if self.first is None else self.first)
        for i, info in enumerate(self.locals["infos"]):
            paid = float(self.locals["rewards"][i])
            self.sums[i] += DISCOUNT ** self.h[i] * (paid - info["unshaped_reward"])
            self.h[i] += 1
            if self.locals["dones"][i]:
                cut = info["TimeLimit.truncated"]
                end = self.value(info["terminal_observation"], int(self.h[i])) if cut else 0.0
                self.found.append(self.sums[i] - (DISCOUNT ** self.h[i] * end - self.value(self.first[i], 0)))
                self.cut.add(bool(cut))
                self.earned.append(info["unshaped_return"])
                self.sums[i] = self.h[i] = 0
                self.first[i] = self.locals["new_obs"][i]
        return True


@pytest.fixture(scope="module")
def ceilings():
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 20_000) for name in world.demonstrators])
    return cs.value_ceilings(counts, 20, -0.1, discount=DISCOUNT)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_shaped_and_unshaped_returns_differ_by_the_telescoped_potential(ceilings, algorithm, step_indexed):
    phi = ceilings.potential(step_indexed=step_indexed)
    env = cs.ShapeReward(gym.make(ID), phi)
    options = {"learning_starts": 100, "train_freq": 32} if algorithm is DQN else {"n_steps": 256, "n_epochs": 1}
    agent = algorithm("MlpPolicy", env, gamma=DISCOUNT, seed=0, device="cpu", **options)
    seen = Differences(lambda state, h: phi(ceilings.space.states[int(np.ravel(state)[0])], h))
    agent.learn(1500, callback=seen)
    assert len(seen.found) > 50
    assert np.abs(seen.found).max() < 1e-5  # rewards pass through single precision
    assert seen.cut == {True, False}
    assert -20 * 1.1 <= min(seen.earned) <= max(seen.earned) <= -0.1 + 1e-9


# Potentials of observations -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Upright(cs.ObservationPotential):
    """A pole that stands is worth more."""

    def values(self, observations, h):
        return -np.abs(observations[:, 2].astype(float))


PHI = Upright(shape=(4,), discount=DISCOUNT, actions=(0, 1))


def outside():
    return cs.ShapeReward(gym.make("CartPole-v1", max_episode_steps=15), PHI)


def stacked_outside():
    return FrameStackObservation(outside(), 2)


def stacked_inside():
    env = FrameStackObservation(gym.make("CartPole-v1", max_episode_steps=15), 2)
    return cs.ShapeReward(env, PHI, observe=lambda seen: seen[-1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("make", [outside, stacked_outside, stacked_inside])
@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_agents_train_on_rewards_that_observations_shape(algorithm, make):
    options = {"learning_starts": 50} if algorithm is DQN else {"n_steps": 64, "n_epochs": 1}
    agent = algorithm("MlpPolicy", DummyVecEnv([make] * 3), gamma=DISCOUNT, seed=0, device="cpu", **options)
    seen = Differences(lambda seen, _: PHI.value(seen.reshape(-1, 4)[-1], 0))
    agent.learn(400, callback=seen)
    assert len(seen.found) > 20
    assert np.abs(seen.found).max() < 1e-5  # rewards pass through single precision
