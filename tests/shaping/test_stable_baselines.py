"""Stable-Baselines3 trains on shaped rewards, which differ from the world's by the telescoped potential."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

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


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_shaped_and_unshaped_returns_differ_by_the_telescoped_potential(algorithm, step_indexed):
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 20_000) for name in world.demonstrators])
    phi = cs.value_ceilings(counts, 20, -0.1, discount=DISCOUNT).potential(step_indexed=step_indexed)
    env = cs.ShapeReward(gym.make(ID), phi)
    options = {"learning_starts": 100} if algorithm is DQN else {"n_steps": 256}
    agent = algorithm("MlpPolicy", env, gamma=DISCOUNT, seed=0, device="cpu", **options)
    seen = Episodes(phi, world.space)
    agent.learn(3000, callback=seen)
    assert len(seen.episodes) > 100
    for difference, telescoped, _, _ in seen.episodes:
        assert difference == pytest.approx(telescoped, abs=1e-5)  # rewards pass through single precision
    assert {bool(cut) for _, _, cut, _ in seen.episodes} == {True, False}
    earned = [earned for *_, earned in seen.episodes]
    assert min(earned) >= -20 * 1.1
    assert max(earned) <= -0.1 + 1e-9
