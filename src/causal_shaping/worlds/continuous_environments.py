"""The continuous worlds as Gymnasium environments, with the noise hidden.

An environment takes the steps of its world one at a time, with draws in the order that
`causal_shaping.worlds.dynamics` describes.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.acting import HiddenNoiseEnv, refuse_options
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import SeeingRule, States, pick_rows
from causal_shaping.worlds.field import load_continuous_world


class ContinuousEnv(HiddenNoiseEnv):
    """A continuous world to act in: observations are its coordinates, float32.

    Args:
        world: the world, or its name for `load_world`.
        options: further arguments of `load_world`, such as horizon=.
    """

    metadata = {"render_modes": []}  # noqa: RUF012, Gymnasium's own declaration

    def __init__(self, world: ContinuousWorld | str, **options: Any) -> None:
        if isinstance(world, ContinuousWorld):
            refuse_options(world, options)
            self.world = world
        else:
            self.world = load_continuous_world(world, **options)
        self.observation_space = gym.spaces.Box(self.world.low, self.world.high, dtype=np.float32)
        self.action_space = gym.spaces.Discrete(len(self.world.actions))
        self._state: States = np.zeros((1, len(self.world.columns)), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[States, dict[str, Any]]:
        """Start an episode, with `options={"state": coordinates}` in a state of your choice."""
        super().reset(seed=seed)
        state = self.world.start(self.np_random.random((1, self.world.start_draws)))
        if options and "state" in options:
            state = np.asarray(options["state"], np.float32).reshape(1, -1)
            if state.shape[1:] != self.observation_space.shape or self.world.terminal(state)[0]:
                why = "it is terminal, or no state"
                raise ArgumentError(f"An episode cannot start in {options['state']!r}: {why}.")
        self._state, self.step_count, self._over = state, 0, False
        return self.observe(), self._info()

    def _draw_noise(self) -> int:
        return int(pick_rows(self.world.noise(self._state), self.np_random.random(1))[0])

    def _choose(self, rule: SeeingRule, noise: int) -> int:
        return int(pick_rows(rule(self._state)[:, noise], self.np_random.random(1))[0])

    def _advance(self, action: int, noise: int) -> tuple[float, bool]:
        draws = self.np_random.random((1, self.world.step_draws))
        moved = self.world.step(self._state, np.array([action]), np.array([noise]), draws)
        self._state = moved.states
        return float(moved.reward[0]), bool(moved.terminated[0])

    def observe(self) -> States:
        """Return the coordinates of the present state."""
        return np.asarray(self._state[0])
