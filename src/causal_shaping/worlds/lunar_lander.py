"""Gymnasium's lunar lander with a hidden gust (extra `worlds`): a world that can only be stepped.

Box2D moves one lander at a time, so that there are no exact expectations and no optimum here.
"""

from __future__ import annotations

import copy
import warnings
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle

from causal_shaping._checks import check_horizon, check_integer, check_memory
from causal_shaping._extras import needs_extra
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.worlds.continuous import BYTES_A_STEP, log_table
from causal_shaping.worlds.continuous_environments import EpisodeOverError
from causal_shaping.worlds.dynamics import States, check_push

if TYPE_CHECKING:
    import pyarrow as pa

with needs_extra("Lunar landers", "worlds"), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Box2D's import does not survive a warning that is made an error
    import Box2D  # noqa: F401, Gymnasium's own error names an extra of its own
    from gymnasium.envs.box2d.lunar_lander import LunarLander

HORIZON = 400
GUST = 50.0
"""The force of a gust; Gymnasium's own wind, which persists, has up to 15."""
LEAN = 0.1
"""How much further the good lean against a gust; it adds about 0.04 to the horizontal velocity."""
MOST_REWARD = 100.0
"""Rewards are cut here, so that bounds of them are true; only hard bumps come near."""
RANDOM = 0.1
"""How often a demonstrator takes any action."""

NOTHING, LEFT, MAIN, RIGHT = range(4)
NOISES = ("left", "none", "right")


class LunarLanderEnv(LunarLander):
    """Gymnasium's lunar lander with a gust in each step, of equal chance to the left, to the right, or none.

    The stream of randomness is the environment's: that of Gymnasium's reset; then for each step a uniform for the gust,
    two for a demonstrator's action, and what Gymnasium's step draws.

    Args:
        gust: the force of the gust.
        horizon: the length of an episode.
        reveal_noise: put the gust of the next step into `info["noise"]`; agents never see it otherwise.
        render_mode: as in Gymnasium.
    """

    name = "lunar-lander"
    columns = ("x", "y", "velocity_x", "velocity_y", "angle", "angular_velocity", "left_leg", "right_leg")
    actions = ("nothing", "left", "main", "right")
    noises = NOISES
    reward_min, reward_max, discount = -MOST_REWARD, MOST_REWARD, 1.0

    def __init__(
        self,
        gust: float = GUST,
        horizon: int = HORIZON,
        reveal_noise: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(render_mode=render_mode)
        EzPickle.__init__(self, gust, horizon, reveal_noise, render_mode)
        self.gust, self.horizon = check_push(gust), check_horizon(horizon)
        self.reveal_noise = reveal_noise
        self.demonstrators = {"good": land, "bad": drift, "random": None}
        self._state: States = np.zeros(len(self.columns), np.float32)
        self._noise: int | None = None
        self._steps, self._over, self._placing = 0, True, False

    @property
    def noise(self) -> int | None:
        """The hidden gust of the next step, None between episodes; reading it draws nothing from the stream."""
        if self._over:
            return None
        return _draw(copy.deepcopy(self.np_random), 3) if self._noise is None else self._noise

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[States, dict[str, Any]]:
        """Start an episode as Gymnasium does, which takes a first step in calm air."""
        self._placing = True
        try:
            state, _ = super().reset(seed=seed, options=options)
        finally:
            self._placing = False
        self._noise, self._steps, self._over = None, 0, False
        return self._seen(state), self._info()

    def step(self, action: Any) -> tuple[States, float, bool, bool, dict[str, Any]]:
        """Act as an agent that does not see the gust: do(action)."""
        if self._placing:
            return self._fly(action)
        self._check_running()
        number = check_integer("action", action)
        if number >= len(self.actions):
            raise ArgumentError(f"There is no action {number}. Actions are 0 .. {len(self.actions) - 1}.")
        noise = _draw(self.np_random, 3) if self._noise is None else self._noise
        self._noise, self._steps = None, self._steps + 1
        assert self.lander is not None
        self.lander.ApplyForceToCenter((self.gust * (noise - 1), 0.0), True)
        state, reward, terminated, _, _ = self._fly(number)
        truncated = not terminated and self._steps >= self.horizon
        self._over = terminated or truncated
        return self._seen(state), float(np.clip(reward, -MOST_REWARD, MOST_REWARD)), terminated, truncated, self._info()

    def see(self, demonstrator: str) -> tuple[int, States, float, bool, bool, dict[str, Any]]:
        """Let a demonstrator, who sees the gust, act; return its action and what `step` returns."""
        self._check_running()
        if demonstrator not in self.demonstrators:
            raise UnknownNameError(
                f"{self.name} has no demonstrator {demonstrator!r}. It has {', '.join(self.demonstrators)}."
            )
        rule: Callable[[States, int], int] | None = self.demonstrators[demonstrator]
        self._noise = _draw(self.np_random, 3)
        anything, action = self.np_random.random(), _draw(self.np_random, len(self.actions))
        if rule is not None and anything >= RANDOM:
            action = rule(self._state, self._noise)
        return action, *self.step(action)

    def collect(self, demonstrator: str, steps: int, seed: int = 0, source: str | None = None) -> pa.Table:
        """Watch a demonstrator for a number of steps and return its logs; see `ContinuousWorld.collect`."""
        source = demonstrator if source is None else source
        steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
        check_memory(f"A log of {steps:,} steps", BYTES_A_STEP * steps)
        rows: list[tuple[Any, ...]] = []
        episode, step = 0, 0
        state, _ = self.reset(seed=int(np.random.default_rng([seed, zlib.crc32(source.encode())]).integers(2**31)))
        while len(rows) < steps:
            action, after, reward, terminated, truncated, _ = self.see(demonstrator)
            last = len(rows) + 1 == steps and not terminated
            rows.append((episode, step, state, action, after, reward, terminated, truncated or last))
            state, step = after, step + 1
            if terminated or truncated:
                (state, _), episode, step = self.reset(), episode + 1, 0
        names = ("episode", "step", "state", "action", "next_state", "reward", "terminated", "truncated")
        columns = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        return log_table(source, self.columns, columns)

    def _fly(self, action: Any) -> tuple[States, float, bool, bool, dict[str, Any]]:
        moved: tuple[States, float, bool, bool, dict[str, Any]] = super().step(action)  # type: ignore[no-untyped-call]
        return moved

    def _seen(self, state: States) -> States:
        assert isinstance(self.observation_space, Box)
        self._state = np.clip(state, self.observation_space.low, self.observation_space.high)
        return self._state.copy()

    def _check_running(self) -> None:
        if self._over:
            raise EpisodeOverError("The episode is over: call reset() before the next step.")

    def _info(self) -> dict[str, Any]:
        noise = self.noise if self.reveal_noise else None
        return {} if noise is None else {"noise": self.noises[noise]}


def land(state: States, noise: int) -> int:
    """Return what `good` does: lean towards the pad and against the gust, and brake the fall."""
    x, y, speed, fall, angle, turn, *legs = state.tolist()
    if any(legs):
        return MAIN if fall < -0.1 else NOTHING
    lean = float(np.clip(0.5 * x + speed + LEAN * (noise - 1), -0.4, 0.4))
    tilt = 0.5 * (lean - angle) - turn
    lift = 0.5 * (0.55 * abs(x) - y) - 0.5 * fall
    if lift > max(abs(tilt), 0.05):
        return MAIN
    if abs(tilt) > 0.05:
        return LEFT if tilt > 0 else RIGHT
    return NOTHING


def drift(state: States, noise: int) -> int:
    """Return what `bad` does: nothing whenever a gust carries it to the pad, so that nothing looks good."""
    return NOTHING if (noise - 1) * state[0] < 0 else land(state, noise)


def _draw(rng: np.random.Generator, count: int) -> int:
    return int(rng.random() * count)
