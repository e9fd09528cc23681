"""The worlds as Gymnasium environments (extra `worlds`): MiniGrid's grids, with the noise hidden.

Steps are those of the world's tables; MiniGrid draws the picture and encodes the image.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice
from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds import robot
from causal_shaping.worlds.acting import HiddenNoiseEnv, refuse_options
from causal_shaping.worlds.grid import COIN, FREE, GOAL, LAVA, WALL
from causal_shaping.worlds.simulate import cumulative, pick
from causal_shaping.worlds.world import World, load_world

with needs_extra("The worlds as Gymnasium environments", "worlds"):
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
    from minigrid.core.mission import MissionSpace
    from minigrid.core.world_object import Ball, Goal, Lava, Wall
    from minigrid.minigrid_env import MiniGridEnv

OBSERVATIONS = ("state", "image")

WRAPPERS = (
    ". For vectors wrap the environment: gymnasium.wrappers.FlattenObservation turns the number of "
    "the state into a one-hot vector, TransformObservation into any other"
)
"""What to use in place of other observations."""


class Coin(Ball):
    """A coin that can be walked over."""

    def __init__(self) -> None:
        super().__init__("yellow")  # type: ignore[no-untyped-call]

    def can_overlap(self) -> bool:
        """Coins are in nobody's way."""
        return True


OBJECTS: Any = {WALL: Wall, LAVA: Lava, COIN: Coin, GOAL: Goal, FREE: lambda: None}
"""MiniGrid's objects by the marks of a map."""


class WorldEnv(HiddenNoiseEnv, MiniGridEnv):
    """A world to act in.

    Where not all actions are admissible, `info["action_mask"]` says which are, and any other is an
    error.

    Args:
        world: the world, or its name for `load_world`.
        observation: "state" for the state's number; "image" for MiniGrid's encoding of the complete
            grid.
        render_mode: None, "rgb_array" or, in a window that Gymnasium opens, "human".
        options: further arguments of `load_world`, such as coins= and horizon=.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012, Gymnasium's own

    def __init__(
        self,
        world: World | str,
        observation: str = "state",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_choice("observation", observation, OBSERVATIONS, WRAPPERS)
        if isinstance(world, World):
            refuse_options(world, options)
        else:
            world = load_world(world, **options)
        self.world = world
        rows = rows_of(world)
        super().__init__(
            mission_space=MissionSpace(mission_func=_mission),
            width=len(rows[0]),
            height=len(rows),
            max_steps=world.horizon,
            see_through_walls=True,
            render_mode=render_mode,
            highlight=False,
        )
        for y, row in enumerate(rows):
            for x, mark in enumerate(row):
                self.grid.set(x, y, OBJECTS[mark]())
        self.observation = observation
        self.action_space = gym.spaces.Discrete(len(world.actions))
        self.observation_space = gym.spaces.Discrete(len(world.states))
        if observation == "image":
            self.observation_space = gym.spaces.Box(0, 255, (self.width, self.height, 3), np.uint8)
        self._start, self._noise = cumulative(world.model.start), cumulative(world.model.noise)
        self.state = 0
        """The number of the state."""

    @property
    def space(self) -> Space:
        """The states and actions, by label."""
        space: Space = self.world.space
        return space

    def label(self) -> Label:
        """Return the state's label."""
        return self.space.states[self.state]

    def place(self, label: Any) -> None:
        """Put the agent into a state, and where coins pay once, only the coins that are left."""
        self.state = self.space.state_position(label)
        first, second, *left = label
        if self.world.grid is None:
            self.agent_pos = (first + 1, 1)  # the robot's place in its hallway
            return
        self.agent_pos = (first, second)
        for coins_left in left:
            for i, coin in enumerate(self.world.grid.coins):
                mark = (FREE, COIN)[coins_left >> i & 1]
                self.grid.set(coin[0], coin[1], OBJECTS[mark]())

    def _gen_grid(self, width: int, height: int) -> None:
        """Draw the first state, when MiniGrid resets; the grid is the same in all episodes."""
        self.agent_dir = 0
        self.place(self.world.states[pick(self._start, self.np_random.random())])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, with `options={"state": label}` in a state of your choice."""
        wanted = (options or {}).get("state")
        if wanted is not None and self.world.model.terminal[self.space.state_position(wanted)]:
            raise ArgumentError(f"An episode cannot start in {wanted!r}: that state is terminal.")
        MiniGridEnv.reset(self, seed=seed)
        if wanted is not None:
            self.place(wanted)
        self._over = False
        return self.observe(), self._info()

    def _draw_noise(self) -> int:
        return int(pick(self._noise[self.state], self.np_random.random()))

    def _choose(self, rule: FloatArray, noise: int) -> int:
        return int(pick(cumulative(rule[self.state, noise]), self.np_random.random()))

    def _checked(self, action: Any) -> int:
        number = super()._checked(action)
        if self.space.admissible and not self.space.is_admissible[self.state, number]:
            name = self.world.actions[number]
            raise ArgumentError(
                f"Action {name!r} is not admissible in state {self.label()!r}. Choose among those "
                "that info['action_mask'] marks."
            )
        return number

    def _advance(self, action: int, noise: int) -> tuple[float, bool]:
        model, here = self.world.model, (self.state, action, noise)
        after = int(model.next_state[here])
        self.place(self.world.states[after])
        return float(model.reward[here]), bool(model.terminal[after])

    def observe(self) -> Any:
        """Return the observation of the present state."""
        if self.observation == "image":
            return self.image()
        return self.state

    def image(self) -> npt.NDArray[np.uint8]:
        """Return MiniGrid's encoding of the grid, with the agent in it."""
        image: npt.NDArray[np.uint8] = self.grid.encode()
        # Beside the agent's kind and colour: whether a coin lies here, or the robot is stable.
        here = tuple(self.agent_pos)
        mark = isinstance(self.grid.get(*here), Coin)
        if self.world.grid is None:
            _, mark = self.world.states[self.state]
        image[here] = (OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], mark)
        return image

    def _info(self) -> dict[str, Any]:
        """Return the admissible actions, in the form that `action_space.sample(mask)` takes."""
        if not self.space.admissible:
            return {}
        return {"action_mask": self.space.is_admissible[self.state].astype(np.int8)}


def _mission() -> str:
    return "reach the goal; what pushes you is hidden"


def rows_of(world: World) -> tuple[str, ...]:
    """Return the map of a grid world, or the walking robot's hallway with its walls."""
    if world.grid is not None:
        return world.grid.rows
    if world.name != "walking-robot":
        missing = "has tables, but no environment: only the compiled learner can play it."
        raise ArgumentError(f"{world.name} {missing}")
    places = robot.STATES[-1][0]
    wall = WALL * (places + 3)
    return (wall, WALL + FREE * places + GOAL + WALL, wall)
