"""The rules of a world whose states cannot be listed: one step function, on arrays of many states at once.

- `Dynamics`: start, hidden noise, step; what a world defines, and all that can follow a state as `Outcomes`.

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

from causal_shaping._checks import check_finite
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.worlds.simulate import cumulative

States: TypeAlias = npt.NDArray[np.float32]
"""float32 [states, coordinates], as environments show them."""
Numbers: TypeAlias = npt.NDArray[np.int64]

SeeingRule: TypeAlias = Callable[[States], FloatArray]
"""A demonstrator: states to the probability of each action under each noise, [states, noises, actions]."""


class Outcomes(NamedTuple):
    """All that can follow some states: by action, hidden noise, and a node of the noise that nobody sees.

    The mean of f under do(x) in state s is the sum over u and k of `probability[s, u, k] * f(s, x, u, k)`; a
    demonstrator of rule beta takes x and meets (u, k) with `probability[s, u, k] * beta[s, u, x]`. What has no
    probability is left blank: the state itself, a reward of 0.
    """

    next_states: States  # [states, actions, noises, nodes, coordinates]
    reward: FloatArray  # [states, actions, noises, nodes]
    terminated: BoolArray  # [states, actions, noises, nodes]
    probability: FloatArray  # [states, noises, nodes]


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
    degree: int = 1  # of the polynomials between points of a grid; above 1 the points are evenly spaced, none terminal

    # What each world defines

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

    def axes(self, grid: int) -> tuple[FloatArray, ...]:
        """Return the points of a grid along each coordinate, rising: here `grid` from the least to the most."""
        return tuple(
            np.linspace(low, high, grid) for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True)
        )

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return uniforms [nodes, step_draws] that stand for all, and their weights; here there is nothing to draw."""
        return np.zeros((1, self.step_draws)), np.ones(1)

    # What follows from it

    def demonstrator(self, name: str | SeeingRule) -> SeeingRule:
        """Return a demonstrator's rule by its name; a rule is returned as it is."""
        if callable(name):
            return name
        if name not in self.demonstrators:
            raise UnknownNameError(f"{self.name} has no demonstrator {name!r}. It has {', '.join(self.demonstrators)}.")
        return self.demonstrators[name]

    def outcomes(self, states: States, nodes: int = 5) -> Outcomes:
        """Return all that can follow states, for exact expectations.

        Args:
            states: float32 [states, coordinates].
            nodes: nodes of a quadrature for each continuous draw of a step.
        """
        states = np.asarray(states, np.float32)
        draws, weights = self.nodes(nodes)
        probability = self.noise(states)[:, :, None] * weights
        shape = (len(states), len(self.actions), len(self.noises), len(weights))
        s, x, u, k = np.nonzero(np.broadcast_to(probability[:, None] > 0, shape))
        moved = self.step(states[s], x, u, draws[k])
        next_states = np.broadcast_to(states[:, None, None, None], (*shape, len(self.columns))).copy()
        reward, terminated = np.zeros(shape), np.zeros(shape, dtype=bool)
        next_states[s, x, u, k], reward[s, x, u, k], terminated[s, x, u, k] = moved
        return Outcomes(next_states, reward, terminated, probability)


def pick_rows(probabilities: FloatArray, uniforms: FloatArray) -> Numbers:
    """Return for each row the first position whose running sum exceeds a uniform number in [0, 1)."""
    return np.asarray(np.argmax(cumulative(probabilities) > uniforms[:, None], axis=1))


def mostly(preferred: Numbers, actions: int, random: float) -> FloatArray:
    """Return the rule that takes the preferred actions [states, noises], but any with probability `random`."""
    return (1 - random) * np.eye(actions)[preferred] + random / actions


def check_push(push: float) -> float:
    """Return the size of a hidden push; or say what is wrong."""
    check_finite("push", push)
    if push < 0:
        raise ArgumentError(f"push is {push}; it must be at least 0.")
    return push
