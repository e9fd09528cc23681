"""The continuous worlds as Gymnasium environments, with the noise hidden.

They take the steps of their world, one at a time. Randomness is the environment's one stream, drawn as
`causal_shaping.worlds.dynamics` says.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError, CausalShapingError
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import SeeingRule, States, pick_rows
from causal_shaping.worlds.field import load_continuous_world


class EpisodeOverError(CausalShapingError, gym.error.ResetNeeded):
    """A step after the end of an episode."""


class ContinuousEnv(gym.Env[States, np.int64]):
    """A continuous world to act in: observations are its coordinates, float32.

    Args:
        world: the world, or its name for `load_world`.
        options: further arguments of `load_world`, such as horizon=.
    """

    metadata = {"render_modes": []}  # noqa: RUF012, Gymnasium's own declaration

    def __init__(self, world: ContinuousWorld | str, **options: Any) -> None:
        if isinstance(world, ContinuousWorld) and options:
            raise ArgumentError(
                f"{', '.join(options)} can be set when a world is loaded, not beside a ContinuousWorld."
            )
        self.world = world if isinstance(world, ContinuousWorld) else load_continuous_world(world, **options)
        self.observation_space = gym.spaces.Box(self.world.low, self.world.high, dtype=np.float32)
        self.action_space = gym.spaces.Discrete(len(self.world.actions))
        self._state: States = np.zeros((1, len(self.world.columns)), np.float32)
        self._noise: int | None = None
        self._steps, self._over = 0, True

    @property
    def horizon(self) -> int:
        """The number of steps after which an episode is truncated."""
        return self.world.horizon

    def _draw_noise(self) -> int:
        return int(pick_rows(self.world.noise(self._state), self.np_random.random(1))[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[States, dict[str, Any]]:
        """Start an episode; `options={"state": coordinates}` starts it in a given state, with the usual draw."""
        super().reset(seed=seed)
        state = self.world.start(self._draw(self.world.start_draws))
        if options and "state" in options:
            state = np.asarray(options["state"], np.float32).reshape(1, -1)
            if state.shape[1:] != self.observation_space.shape or self.world.terminal(state)[0]:
                raise ArgumentError(f"An episode cannot start in {options['state']!r}: it is terminal, or no state.")
        self._state, self._noise, self._steps, self._over = state, None, 0, False
        return self._state[0], {}

    def step(self, action: Any) -> tuple[States, float, bool, bool, dict[str, Any]]:
        """Act as an agent that does not see the noise: do(action)."""
        self._check_running()
        number = check_integer("action", action)
        if number >= len(self.world.actions):
            raise ArgumentError(f"There is no action {number}. Actions are 0 .. {len(self.world.actions) - 1}.")
        noise = self._draw_noise() if self._noise is None else self._noise
        self._noise, self._steps = None, self._steps + 1
        draws = self._draw(self.world.step_draws)
        moved = self.world.step(self._state, np.array([number]), np.array([noise]), draws)
        self._state, terminated = moved.states, bool(moved.terminated[0])
        truncated = not terminated and self._steps >= self.horizon
        self._over = terminated or truncated
        return self._state[0], float(moved.reward[0]), terminated, truncated, {}

    def see(self, demonstrator: str | SeeingRule) -> tuple[int, States, float, bool, bool, dict[str, Any]]:
        """Let a demonstrator, who sees the noise, act; return its action and what `step` returns."""
        self._check_running()
        rule = self.world.demonstrator(demonstrator)
        self._noise = self._draw_noise()
        action = int(pick_rows(rule(self._state)[:, self._noise], self.np_random.random(1))[0])
        return action, *self.step(action)

    def _draw(self, count: int) -> FloatArray:
        return self.np_random.random((1, count))

    def _check_running(self) -> None:
        if self._over:
            raise EpisodeOverError("The episode is over: call reset() before the next step.")
