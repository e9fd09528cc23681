"""The steps of an environment with hidden noise, for worlds of tables and continuous ones alike.

Randomness is the environment's one stream: the start of an episode, then for each step one uniform
for the hidden noise, in `see` one for the demonstrator's action, and what the world itself draws.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeAlias

import gymnasium as gym

from causal_shaping._checks import check_integer
from causal_shaping.errors import ArgumentError, CausalShapingError

Result: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated and info of a step."""


class EpisodeOverError(CausalShapingError, gym.error.ResetNeeded):
    """A step after the end of an episode."""


class HiddenNoiseEnv(gym.Env[Any, Any]):
    """An environment whose noise is drawn before each action and shown to demonstrators only."""

    world: Any
    step_count = 0
    _over = True

    @property
    def horizon(self) -> int:
        """The number of steps after which an episode is truncated."""
        return int(self.world.horizon)

    @abstractmethod
    def _draw_noise(self) -> int:
        """Draw the number of the hidden noise's value in the present state."""

    @abstractmethod
    def _choose(self, rule: Any, noise: int) -> int:
        """Draw the number of an action, by a rule that the world's `demonstrator` returned."""

    @abstractmethod
    def _advance(self, action: int, noise: int) -> tuple[float, bool]:
        """Move to the next state; return the reward and whether the episode terminated."""

    @abstractmethod
    def observe(self) -> Any:
        """Return the observation of the present state."""

    def _info(self) -> dict[str, Any]:
        """Return what Gymnasium's `info` holds in the present state."""
        return {}

    def step(self, action: Any) -> Result:
        """Act as an agent that does not see the noise: do(action)."""
        number = self._checked(action)
        return self._finished_step(number, self._draw_noise())

    def see(self, demonstrator: Any) -> tuple[int, Any, float, bool, bool, dict[str, Any]]:
        """Let a demonstrator, who sees the noise, act; return its action and what `step` returns.

        Args:
            demonstrator: its name, or what the world's `demonstrator` takes.
        """
        self._check_running()
        rule = self.world.demonstrator(demonstrator)
        noise = self._draw_noise()
        action = self._choose(rule, noise)
        return action, *self._finished_step(self._checked(action), noise)

    def _finished_step(self, action: int, noise: int) -> Result:
        self.step_count += 1
        reward, terminated = self._advance(action, noise)
        truncated = not terminated and self.step_count >= self.horizon
        self._over = terminated or truncated
        return self.observe(), reward, terminated, truncated, self._info()

    def _checked(self, action: Any) -> int:
        self._check_running()
        number, last = check_integer("action", action), len(self.world.actions) - 1
        if number > last:
            raise ArgumentError(f"There is no action {number}. Actions are 0 .. {last}.")
        return number

    def _check_running(self) -> None:
        if self._over:
            raise EpisodeOverError("The episode is over: call reset() before the next step.")


def refuse_options(world: Any, options: dict[str, Any]) -> None:
    """Refuse options of `load_world` beside a world that was loaded before."""
    if options:
        names, kind = ", ".join(options), type(world).__name__
        raise ArgumentError(f"{names} can be set when a world is loaded, not beside a {kind}.")
