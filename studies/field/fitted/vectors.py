"""Continuous worlds for agents: several episodes side by side, all moved by one call of the world's step.

- `WorldVector`: a Gymnasium vector environment, with autoreset in the same step.
- `ForStableBaselines`: any such vector for Stable-Baselines3, with observations from -1 to 1.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv

from causal_shaping.data.arrays import FloatArray
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import States, pick_rows


class WorldVector(VectorEnv[Any, Any, Any]):
    """Several copies of a continuous world; the noise is hidden."""

    def __init__(self, world: ContinuousWorld, count: int) -> None:
        self.world, self.num_envs, self.metadata = world, count, {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gym.spaces.Box(world.low, world.high, dtype=world.low.dtype.type)
        self.single_action_space = gym.spaces.Discrete(len(world.actions))
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, count)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, count)
        self._steps = np.zeros(count, dtype=np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[States, dict[str, Any]]:
        """Start all episodes."""
        super().reset(seed=seed, options=options)
        self._states, self._steps = self._starts(self.num_envs), np.zeros(self.num_envs, dtype=np.int64)
        return self._states.copy(), {}

    def _starts(self, count: int) -> States:
        return self.world.start(self.np_random.random((count, self.world.start_draws)))

    def step(self, actions: Any) -> tuple[States, FloatArray, Any, Any, dict[str, Any]]:
        """Act; an episode that ends begins anew, and `info["final_obs"]` holds where it ended."""
        world, rng = self.world, self.np_random
        noises = pick_rows(world.noise(self._states), rng.random(self.num_envs))
        moved = world.step(self._states, np.asarray(actions), noises, rng.random((self.num_envs, world.step_draws)))
        self._steps += 1
        terminated = np.asarray(moved.terminated)
        truncated = ~terminated & (self._steps >= world.horizon)
        over = terminated | truncated
        self._states, info = moved.states.copy(), {}
        if over.any():
            final = np.empty(self.num_envs, dtype=object)
            final[:] = list(moved.states)
            info = {"final_obs": final, "_final_obs": over}
            self._states[over], self._steps[over] = self._starts(int(over.sum())), 0
        return self._states.copy(), np.asarray(moved.reward), terminated, truncated, info


class ForStableBaselines(VecEnv):
    """A vector with autoreset in the same step, for Stable-Baselines3; observations are scaled by their bounds."""

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int) -> None:
        space = env.single_observation_space
        assert isinstance(space, gym.spaces.Box)
        self.env, self._seed = env, seed
        self._centre, self._half = (space.high + space.low) / 2, (space.high - space.low) / 2
        seen = gym.spaces.Box(-1.0, 1.0, space.shape, np.float32)
        super().__init__(env.num_envs, seen, env.single_action_space)

    def scaled(self, observations: Any) -> npt.NDArray[np.float32]:
        """Return observations as the agent sees them."""
        return np.asarray((observations - self._centre) / self._half, dtype=np.float32)

    def reset(self) -> npt.NDArray[np.float32]:
        """Start all episodes."""
        return self.scaled(self.env.reset(seed=self._seed)[0])

    def step_async(self, actions: Any) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Act with the actions that were kept."""
        seen, rewards, terminated, truncated, info = self.env.step(self._actions)
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(cut)} for cut in truncated]
        for i in np.flatnonzero(terminated | truncated):
            infos[i]["terminal_observation"] = self.scaled(info["final_obs"][i])
        return self.scaled(seen), rewards.astype(np.float32), terminated | truncated, infos

    def close(self) -> None:
        """Leave nothing behind."""

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector, once for each copy."""
        return [getattr(self.env, name)] * len(self._get_indices(indices))

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        """There is nothing to set."""
        raise NotImplementedError(name)

    def env_method(self, name: str, *arguments: Any, indices: Any = None, **options: Any) -> list[Any]:
        """There is nothing to call."""
        raise NotImplementedError(name)

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        """Return that nothing is wrapped."""
        return [False] * len(self._get_indices(indices))
