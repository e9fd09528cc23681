"""Shaped rewards in Stable-Baselines3's own vectors of environments.

`ShapeReward(vec_env, potential)` returns a `ShapedVecEnv`. Only this module needs the library.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, iterate
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from causal_shaping.shaping.base import ShapingWrapper
from causal_shaping.shaping.environments import EnvironmentFacts, facts_of_vec_env


class ShapedVecEnv(ShapingWrapper, VecEnvWrapper):
    """A vector of Stable-Baselines3 whose rewards are shaped; `infos` says what was added."""

    def _facts_of(self, env: VecEnv) -> EnvironmentFacts:
        return facts_of_vec_env(env)

    def _wrap(self, env: VecEnv) -> None:
        VecEnvWrapper.__init__(self, env)
        spaces = env.observation_space, env.action_space
        self._batched = [batch_space(space, env.num_envs) for space in spaces]
        self._none = np.zeros(env.num_envs, dtype=bool)

    def reset(self) -> Any:
        """Start an episode in each environment."""
        observations = self.venv.reset()
        seen = list(iterate(self._batched[0], observations))
        self._begin_all(range(self.num_envs), seen, self.venv.unwrapped.reset_infos)
        return observations

    def step_async(self, actions: Any) -> None:
        """Send the actions to the environments."""
        self._taken = list(iterate(self._batched[1], actions))
        for i, action in enumerate(self._taken):
            self._refuse_inadmissible(i, action)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Return what followed, with shaped rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        # Such a vector begins the next episode at once: the last observation is in `infos`.
        seen = list(iterate(self._batched[0], observations))
        steps = []
        for i, info in enumerate(infos):
            truncated = bool(dones[i] and info.get("TimeLimit.truncated"))
            last = info.get("terminal_observation", seen[i])
            ends = bool(dones[i]) and not truncated, truncated
            steps.append((self._taken[i], float(rewards[i]), last, *ends))
        facts = self._step_all(steps, infos, self._none)
        self._begin_all(np.flatnonzero(dones).tolist(), seen, self.venv.unwrapped.reset_infos)
        shaped = rewards + np.array([one["shaping"] for one in facts], dtype=rewards.dtype)
        infos = [info | one for info, one in zip(infos, facts, strict=True)]
        return observations, shaped, dones, infos


class FirstOfVecEnv(gym.Env[Any, Any]):
    """The first environment of a vector as one environment; the others take the same actions."""

    def __init__(self, vec_env: VecEnv) -> None:
        facts = facts_of_vec_env(vec_env)
        self.action_space, self.observation_space = facts.actions, facts.observations
        self.space, self.horizon = facts.space, facts.time_limit
        self._batched = batch_space(facts.observations, vec_env.num_envs)
        self._vec_env, self._next = vec_env, None

    def _first(self, observations: Any) -> Any:
        return next(iter(iterate(self._batched, observations)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, unless the vector has begun one by itself."""
        if seed is not None:
            self._vec_env.seed(seed)
        if seed is not None or self._next is None:
            self._next = self._first(self._vec_env.reset())
        observation, self._next = self._next, None
        return observation, self._vec_env.unwrapped.reset_infos[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act in all environments; return what followed in the first."""
        actions = np.array([action] * self._vec_env.num_envs)
        observations, rewards, dones, infos = self._vec_env.step(actions)
        observation, info, done = self._first(observations), infos[0], bool(dones[0])
        truncated = done and bool(info.get("TimeLimit.truncated"))
        if done:
            observation, self._next = info["terminal_observation"], observation
        return observation, float(rewards[0]), done and not truncated, truncated, info
