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


class Episodes(BaseCallback):
    """Keeps the discounted shaped and unshaped return of every episode, and the potential at both ends of it."""

    def __init__(self, phi, space):
        super().__init__()
        self.phi, self.space = phi, space
        self.episodes, self.shaped, self.plain, self.factor, self.h = [], 0.0, 0.0, 1.0, 0

    def _on_training_start(self):
        self.start = int(np.ravel(self.model._last_obs)[0])

    def _on_step(self):
        info = self.locals["infos"][0]
        self.shaped += self.factor * float(self.locals["rewards"][0])
        self.plain += self.factor * info["unshaped_reward"]
        self.factor, self.h = self.factor * DISCOUNT, self.h + 1
        if self.locals["dones"][0]:
            cut = info.get("TimeLimit.truncated", False)
            last = int(info["terminal_observation"])
            end = self.factor * self.phi(self.space.states[last], self.h) if cut else 0.0
            begin = self.phi(self.space.states[self.start])
            self.episodes.append((self.shaped - self.plain, end - begin, cut, info["unshaped_return"]))
            self.shaped, self.plain, self.factor, self.h = 0.0, 0.0, 1.0, 0
            self.start = int(np.ravel(self.locals["new_obs"])[0])
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
    seen = Episodes(phi, ceilings.space)
    agent.learn(1500, callback=seen)
    assert len(seen.episodes) > 50
    for difference, telescoped, _, _ in seen.episodes:
        assert difference == pytest.approx(telescoped, abs=1e-5)  # rewards pass through single precision
    assert {bool(cut) for _, _, cut, _ in seen.episodes} == {True, False}
    earned = [earned for *_, earned in seen.episodes]
    assert min(earned) >= -20 * 1.1
    assert max(earned) <= -0.1 + 1e-9


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


class Differences(BaseCallback):
    """Keeps shaped minus unshaped discounted returns, minus what the last potential makes of them."""

    def _init_callback(self):
        self.found, self.sums = [], np.zeros(self.training_env.num_envs)
        self.h, self.first = np.zeros_like(self.sums), None

    def _on_step(self):
        first = self.model._last_obs if self.first is None else self.first
        self.first = np.array(first)
        for i, info in enumerate(self.locals["infos"]):
            paid = float(self.locals["rewards"][i])
            self.sums[i] += DISCOUNT ** self.h[i] * (paid - info["unshaped_reward"])
            self.h[i] += 1
            if self.locals["dones"][i]:
                last = info["terminal_observation"].reshape(-1, 4)[-1]
                end = PHI.value(last, 0) if info["TimeLimit.truncated"] else 0.0
                begin = PHI.value(self.first[i].reshape(-1, 4)[-1], 0)
                self.found.append(self.sums[i] - (DISCOUNT ** self.h[i] * end - begin))
                self.sums[i] = self.h[i] = 0
                self.first[i] = self.locals["new_obs"][i]
        return True


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("make", [outside, stacked_outside, stacked_inside])
@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_agents_train_on_rewards_that_observations_shape(algorithm, make):
    options = {"learning_starts": 50} if algorithm is DQN else {"n_steps": 64, "n_epochs": 1}
    agent = algorithm("MlpPolicy", DummyVecEnv([make] * 3), gamma=DISCOUNT, seed=0, device="cpu", **options)
    seen = Differences()
    agent.learn(400, callback=seen)
    assert len(seen.found) > 20
    assert np.abs(seen.found).max() < 1e-5  # rewards pass through single precision
