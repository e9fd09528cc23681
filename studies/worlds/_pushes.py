"""What the worlds with a hidden push share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import Numbers, SeeingRule, States


class PushedWorld(ContinuousWorld):
    """A world with a hidden push: to the left, to the right or none, with equal chances.

    `good` and `bad` take the actions that they prefer [states, noises], but a random one in a tenth of their steps.

    Args:
        horizon: the length of an episode.
    """

    noises = ("left", "none", "right")
    push: float

    def __init__(self, horizon: int) -> None:
        self.horizon, self.pushes = horizon, self.push * np.array([-1.0, 0.0, 1.0])
        size = len(self.actions)
        self.demonstrators: Mapping[str, SeeingRule] = {
            "good": lambda states: 0.9 * np.eye(size)[self.good(states)] + 0.1 / size,
            "bad": lambda states: 0.9 * np.eye(size)[self.bad(states)] + 0.1 / size,
            "random": lambda states: np.full((len(states), 3, size), 1 / size),
        }

    @abstractmethod
    def good(self, states: States) -> Numbers:
        """Return the actions that are best together with each push."""

    @abstractmethod
    def bad(self, states: States) -> Numbers:
        """Return wrong actions where the push makes up for them."""

    def noise(self, states: States) -> FloatArray:
        """Return equal chances."""
        return np.full((len(states), 3), 1 / 3)
