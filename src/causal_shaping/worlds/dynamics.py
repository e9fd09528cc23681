"""The rules of a world whose states cannot be listed: one step function, on arrays of many states at once.

- `Dynamics`: start, hidden noise, step; what a world defines.

Randomness is one stream of uniforms: `start_draws` for the start of an episode, then for each step one for the hidden
noise, one for the demonstrator's action and `step_draws` for what nobody sees. An agent that acts by itself takes
no draw for the action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import UnknownNameError
from causal_shaping.worlds.simulate import cumulative

States: TypeAlias = npt.NDArray[np.float32]
"""float32 [states, coordinates], as environments show them."""
Numbers: TypeAlias = npt.NDArray[np.int64]

SeeingRule: TypeAlias = Callable[[States], FloatArray]
"""A demonstrator: states to the probability of each action under each noise, [states, noises, actions]."""


class Moved(NamedTuple):
    """Where steps lead."""

    states: States  # [steps, coordinates]
    reward: FloatArray  # [steps]
    terminated: BoolArray  # [steps]


class Dynamics(ABC):
    """The rules of a world with real coordinates; see `ContinuousWorld`."""

    name: str
    horizon: int
    columns: tuple[str, ...]
    actions: tuple[str, ...]
    noises: tuple[str, ...]
    low: States
    high: States
    reward_min: float
    reward_max: float
    demonstrators: Mapping[str, SeeingRule]
    discount: float = 1.0
    start_draws: int = 0
    step_draws: int = 0

    @abstractmethod
    def start(self, draws: FloatArray) -> States:
        """Return the states in which episodes start, by uniforms [episodes, start_draws]."""

    @abstractmethod
    def noise(self, states: States) -> FloatArray:
        """Return the distribution of the hidden noise in states, [states, noises]."""

    @abstractmethod
    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Return where actions lead under noises, by uniforms [states, step_draws]; all of one length."""

    @abstractmethod
    def terminal(self, states: States) -> BoolArray:
        """Return in which states no episode goes on."""

    def demonstrator(self, name: str | SeeingRule) -> SeeingRule:
        """Return a demonstrator's rule by its name; a rule is returned as it is."""
        if callable(name):
            return name
        if name not in self.demonstrators:
            raise UnknownNameError(f"{self.name} has no demonstrator {name!r}. It has {', '.join(self.demonstrators)}.")
        return self.demonstrators[name]


def pick_rows(probabilities: FloatArray, uniforms: FloatArray) -> Numbers:
    """Return for each row the first position whose running sum exceeds a uniform number in [0, 1)."""
    return np.asarray(np.argmax(cumulative(probabilities) > uniforms[:, None], axis=1))
