"""The worlds as Gymnasium environments (extra `worlds`): real MiniGrid worlds, with the noise hidden.

They walk over MiniGrid's own objects and do not look into the tables. Randomness is the environment's one stream: a
uniform for the start state, then one per step for the hidden noise (and, in `see`, one more for the demonstrator's
action).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_integer
from causal_shaping._extras import needs_extra
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.continuous_environments import EpisodeOverError
from causal_shaping.worlds.simulate import cumulative, pick
from causal_shaping.worlds.world import World, load_world

with needs_extra("The worlds as Gymnasium environments", "worlds"):
    from minigrid.core.constants import COLOR_TO_IDX, DIR_TO_VEC, OBJECT_TO_IDX
    from minigrid.core.grid import Grid
    from minigrid.core.mission import MissionSpace
    from minigrid.core.world_object import Ball, Goal, Lava, Wall
    from minigrid.minigrid_env import MiniGridEnv

OBSERVATIONS = ("state", "image")
WRAPPERS = (
    ". For vectors wrap the environment: gymnasium.wrappers.FlattenObservation turns the number of the state into a "
    "one-hot vector, TransformObservation into any other"
)


class Coin(Ball):
    """A coin that can be walked over."""

    def __init__(self) -> None:
        super().__init__("yellow")  # type: ignore[no-untyped-call]

    def can_overlap(self) -> bool:
        """Coins are in nobody's way."""
        return True


class WorldEnv(MiniGridEnv):
    """A world to act in.

    Where not all actions are admissible, `info["action_mask"]` says which are, and any other is an error.

    Args:
        world: the world, or its name for `load_world`.
        observation: "state" for the state's number; "image" for MiniGrid's encoding of the complete grid.
        render_mode: None, "rgb_array" or, in a window that Gymnasium opens, "human".
        options: further arguments of `load_world`, such as coins= and horizon=.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012, Gymnasium's own declaration
    mission_text = ""

    def __init__(
        self,
        world: World | str,
        observation: str = "state",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_choice("observation", observation, OBSERVATIONS, WRAPPERS)
        if isinstance(world, World) and options:
            raise ArgumentError(f"{', '.join(options)} can be set when a world is loaded, not beside a World.")
        self.world = world if isinstance(world, World) else load_world(world, **options)
        width, height = self.size()
        super().__init__(
            mission_space=MissionSpace(mission_func=_no_mission),
            width=width,
            height=height,
            max_steps=self.world.horizon,
            see_through_walls=True,
            render_mode=render_mode,
            highlight=False,
        )
        self.mission = self.mission_text
        self.action_space = gym.spaces.Discrete(len(self.world.actions))
        self.observation_space = gym.spaces.Discrete(len(self.world.states))
        if observation == "image":
            self.observation_space = gym.spaces.Box(0, 255, (width, height, 3), np.uint8)
        self.observation = observation
        self._start = cumulative(self.world.model.start)
        self._noise_sums = cumulative(self.world.model.noise)
        self._over = True
        self._noise: int | None = None
        self._wanted: Label | None = None

    @property
    def space(self) -> Space:
        """The states and actions, by label."""
        return self.world.space

    @property
    def horizon(self) -> int:
        """The number of steps after which an episode is truncated."""
        return int(self.max_steps)

    def _draw_noise(self) -> int:
        return int(pick(self._noise_sums[self.state], self.np_random.random()))

    @property
    def state(self) -> int:
        """The number of the state."""
        return self.world.space.state_position(self.label())

    # What each kind of world defines

    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Return width and height of the grid."""

    @abstractmethod
    def label(self) -> Label:
        """Return the state's label, read off the grid."""

    @abstractmethod
    def place(self, label: Any) -> None:
        """Build the grid with the agent in a state."""

    @abstractmethod
    def advance(self, action: str, noise: str) -> tuple[float, bool]:
        """Move the agent; return the reward and whether the episode terminated."""

    # Gymnasium's interface

    def _gen_grid(self, width: int, height: int) -> None:
        self.agent_dir = 0
        drawn = self.world.states[pick(self._start, self.np_random.random())]
        self.place(drawn if self._wanted is None else self._wanted)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; `options={"state": label}` starts it in a given state, with the usual draw."""
        self._wanted = None
        if options and "state" in options:
            position = self.world.space.state_position(options["state"])
            if self.world.model.terminal[position]:
                raise ArgumentError(f"An episode cannot start in {options['state']!r}: that state is terminal.")
            self._wanted = self.world.states[position]
        self._over, self._noise = False, None
        super().reset(seed=seed)
        return self.observe(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act as an agent that does not see the noise: do(action)."""
        if self._over:
            raise EpisodeOverError("The episode is over: call reset() before the next step.")
        number = check_integer("action", action)
        if number >= len(self.world.actions):
            raise ArgumentError(f"There is no action {number}. Actions are 0 .. {len(self.world.actions) - 1}.")
        if self.space.admissible and not self.space.is_admissible[self.state, number]:
            raise ArgumentError(
                f"Action {self.world.actions[number]!r} is not admissible in state {self.label()!r}. "
                "Choose among those that info['action_mask'] marks."
            )
        noise = self._draw_noise() if self._noise is None else self._noise
        self._noise = None
        self.step_count += 1
        reward, terminated = self.advance(str(self.world.actions[number]), self.world.noises[noise])
        truncated = not terminated and self.step_count >= self.max_steps
        self._over = terminated or truncated
        return self.observe(), reward, terminated, truncated, self._info()

    def see(self, demonstrator: str | npt.ArrayLike) -> tuple[int, Any, float, bool, bool, dict[str, Any]]:
        """Let a demonstrator, who sees the noise, act; return its action and what `step` returns."""
        if self._over:
            raise EpisodeOverError("The episode is over: call reset() before the next step.")
        table = self.world.demonstrator(demonstrator)
        self._noise = self._draw_noise()
        action = int(pick(cumulative(table[self.state, self._noise]), self.np_random.random()))
        return action, *self.step(action)

    def observe(self) -> Any:
        """Return the observation of the present state."""
        return self.image() if self.observation == "image" else self.state

    def image(self) -> npt.NDArray[np.uint8]:
        """Return MiniGrid's encoding of the grid, with the agent in it."""
        image: npt.NDArray[np.uint8] = self.grid.encode()
        image[tuple(self.agent_pos)] = (OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], self.agent_mark())
        return image

    def agent_mark(self) -> int:
        """Return what the image's third channel holds where the agent is."""
        return 0

    def _info(self) -> dict[str, Any]:
        if not self.space.admissible:
            return {}
        # as Gymnasium's own environments tell it, for action_space.sample(mask)
        return {"action_mask": self.space.is_admissible[self.state].astype(np.int8)}


class WindyGridEnv(WorldEnv):
    """A windy grid world: walk to the goal and keep out of the lava, with a wind that the agent does not see."""

    mission_text = "reach the goal; the wind is hidden"

    def size(self) -> tuple[int, int]:
        """Return width and height of the map."""
        if self.world.grid is None:
            raise ArgumentError(f"{self.world.name} is not a grid world. Use WalkingRobotEnv.")
        return self.world.grid.width, self.world.grid.height

    def label(self) -> Label:
        """Return (x, y), and where coins pay once, the coins that are left."""
        cell = tuple(int(i) for i in self.agent_pos)
        if self.world.coins == "standing":
            return cell
        assert self.world.grid is not None
        left = sum(1 << i for i, coin in enumerate(self.world.grid.coins) if isinstance(self.grid.get(*coin), Coin))
        return (*cell, left)

    def place(self, label: Any) -> None:
        """Put MiniGrid's objects where the map has them, and the agent into its cell."""
        grid = self.world.grid
        assert grid is not None
        x, y, *left = label
        self.grid = Grid(self.width, self.height)
        for j, row in enumerate(grid.rows):
            for i, mark in enumerate(row):
                self.grid.set(i, j, {"#": Wall, "L": Lava, "c": Coin, "G": Goal}.get(mark, lambda: None)())
        for i, coin in enumerate(grid.coins):
            if left and not left[0] >> i & 1:
                self.grid.set(*coin, None)
        self.agent_pos = (x, y)

    def advance(self, action: str, noise: str) -> tuple[float, bool]:
        """Walk the resultant of action and wind cell by cell over MiniGrid's objects."""
        ways = {"right": 0, "east": 0, "down": 1, "south": 1, "left": 2, "west": 2, "up": 3, "north": 3}
        forces = [DIR_TO_VEC[ways[name]] for name in (action, noise) if name in ways]
        if action == "still" or not np.any(sum(forces)):
            forces = []
        rewards = [-0.1]
        for force in forces:
            ahead = np.add(self.agent_pos, force)
            thing = self.grid.get(*ahead)
            if thing is not None and not thing.can_overlap():
                continue
            self.agent_pos = (int(ahead[0]), int(ahead[1]))
            if isinstance(thing, Coin):
                rewards.append(0.2)
                if self.world.coins == "once":
                    self.grid.set(*self.agent_pos, None)
            elif thing is not None:
                rewards.append(-1.0 if isinstance(thing, Lava) else 0.0)
                return round(sum(rewards), 10), True
        return round(sum(rewards), 10), False

    def agent_mark(self) -> int:
        """Return whether a coin lies under the agent."""
        return int(isinstance(self.grid.get(*self.agent_pos), Coin))


class WalkingRobotEnv(WorldEnv):
    """The walking robot in a hallway of MiniGrid's tiles: red when stable, purple when about to fall."""

    mission_text = "walk to the end; the step you need when unstable is hidden"

    def size(self) -> tuple[int, int]:
        """Return width and height of the hallway with its walls."""
        places = {label[0] for label in self.world.states if isinstance(label, tuple)}
        return len(places) + 2, 3

    def label(self) -> Label:
        """Return (L, F)."""
        return (int(self.agent_pos[0]) - 1, int(self.stable))

    def place(self, label: Any) -> None:
        """Build the hallway and put the robot into it."""
        self.grid = Grid(self.width, self.height)
        self.grid.wall_rect(0, 0, self.width, self.height)
        self.grid.set(self.width - 2, 1, Goal())
        self.agent_pos = (label[0] + 1, 1)
        self.stable = bool(label[1])

    def advance(self, action: str, noise: str) -> tuple[float, bool]:
        """Take the step by the formulas of the paper's example 1."""
        x, u, f = action == "big-step", noise == "big-needed", self.stable
        forward = (not f and x == u) or (f and not x)
        self.stable = (not x) if f else not (x ^ u)
        self.agent_pos = (self.agent_pos[0] + forward, 1)
        if isinstance(self.grid.get(*self.agent_pos), Goal):
            return 1.0, True
        if f:
            return (0.5 if forward else 0.0), False
        return float(forward) - float(x ^ u), False

    def agent_mark(self) -> int:
        """Return whether the robot is stable."""
        return int(self.stable)


def _no_mission() -> str:
    return ""


def environment_of(world: World) -> WorldEnv:
    """Return the environment of a world that was loaded, with all its options."""
    if world.grid is None and world.name != "walking-robot":
        raise ArgumentError(f"{world.name} has tables, but no environment: only the compiled learner can play it.")
    return WindyGridEnv(world) if world.grid is not None else WalkingRobotEnv(world)
