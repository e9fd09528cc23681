"""A world of tables that is seen as images: MiniGrid's encoding of the grid, which is what logs hold, too.

It has what agents need of a `ContinuousWorld`, with images in place of coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from causal_shaping.worlds.dynamics import Moved, Numbers, pick_rows
from studies.worlds.observations import AGENT, COLUMN, observations, observed_logs

Images = npt.NDArray[np.uint8]
"""uint8 [images, width, height, 3]."""


class ImageWorld:
    """A world of tables whose states are images.

    Args:
        name: the world's name for `load_world`.
        options: its other arguments.
    """

    columns = (COLUMN,)
    start_draws, step_draws = 1, 0

    def __init__(self, name: str, **options: Any) -> None:
        self.world = cs.load_world(name, **options)
        self.name, self.horizon, self.actions = name, self.world.horizon, self.world.actions
        self.reward_min, self.reward_max = self.world.model.reward_range
        self.demonstrators = self.world.demonstrators
        self.images: Images = observations(self.world, "image")
        self.low, self.high = np.zeros_like(self.images[0]), np.full_like(self.images[0], AGENT)
        # A sum of pixels with odd weights of 64 bits, which differs from state to state.
        self._weights = np.random.default_rng(0).integers(2**62, size=self.low.size) * 2 + 1
        keys = self._keys(self.images)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        assert (np.diff(self._sorted) > 0).all()

    def _keys(self, images: Images) -> Numbers:
        return images.reshape(len(images), -1).astype(np.int64) @ self._weights

    def numbers(self, images: Images) -> Numbers:
        """Return the states that images show."""
        return self._order[np.searchsorted(self._sorted, self._keys(images))]

    def start(self, draws: FloatArray) -> Images:
        """Return the states in which episodes start, by uniforms [episodes, 1]."""
        chances = np.tile(self.world.model.start, (len(draws), 1))
        return self.images[pick_rows(chances, draws[:, 0])]

    def noise(self, states: Images) -> FloatArray:
        """Return the distribution of the hidden noise in states, [states, noises]."""
        return self.world.model.noise[self.numbers(states)]

    def step(self, states: Images, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Return where actions lead under noises."""
        model, at = self.world.model, (self.numbers(states), actions, noises)
        after = model.next_state[at]
        return Moved(self.images[after], model.reward[at], model.terminal[after])  # type: ignore[arg-type]

    def collect(self, demonstrator: str, steps: int, seed: int = 0) -> Any:
        """Watch a demonstrator and return its logs, with actions by number."""
        logs = self.world.collect(demonstrator, steps, seed)
        table = observed_logs(self.world, logs, "image")
        return table.set_column(table.column_names.index("action"), "action", [logs.action])

    def optimum(self) -> ExactValues:
        """Return the optimal values of an agent that does not see the noise."""
        return ExactValues(self)


class ExactValues:
    """The optimal values of an image world."""

    def __init__(self, world: ImageWorld) -> None:
        self.world, self.table = world, world.world.model.optimum(world.horizon).q_values

    def q_values(self, states: Images, step: int = 0) -> FloatArray:
        """Return the values of all actions at a step: [states, actions]."""
        return self.table[step, self.world.numbers(states)]
