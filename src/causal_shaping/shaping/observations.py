"""From an observation to what a potential takes, and from there to phi.

A potential of states is a table: `StateLookup` makes a label of an observation, and finds its row.
A potential of observations is a function of arrays: `ObservationLookup` makes the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import Label, plain
from causal_shaping.errors import ArgumentError, DataError, ShapingWarning, UnknownNameError
from causal_shaping.shaping.environments import EnvironmentFacts
from causal_shaping.shaping.warn import warn_user

Function: TypeAlias = Callable[[Any], Any]
"""A function of the user's own: `label` or `observe`."""

Found: TypeAlias = tuple[Any, float]
"""The place of an observation in a potential, and its phi."""

ARRAYS = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""Observations of which a potential's space can make a label: numbers, one for each column."""


class StateLookup:
    """Finds the state of an observation in a potential's table; its place there is a position."""

    def __init__(
        self, potential: Potential, facts: EnvironmentFacts, label: Function | None, observe: Any
    ) -> None:
        """Match a potential's states with an environment's; `label` and `observe` are options."""
        if observe is not None:
            raise ArgumentError(
                "This is a potential of states, which takes no observe=: pass label=."
            )
        observations, own = facts.observations, facts.space
        self.potential, self._given = potential, label
        self._rows, self._warned = potential.rows(), False
        self._last = len(self._rows) - 1
        self._own_states: tuple[Label, ...] = ()
        # Numbers of states are looked up once each. A function of the user's own is always asked:
        # it may look at the environment instead of the observation.
        self._places: dict[int, int] | None = None
        if label is None and isinstance(observations, gym.spaces.Discrete):
            self._first, self._places = int(observations.start), {}
        if label is None and own is not None:
            if self._places is None:
                raise ArgumentError(
                    "This environment's observations are not its states. Make it with observation="
                    "'state', or pass label=, a function from an observation to a state's label."
                )
            self._own_states = own.states
            positions = potential.match(own, stacklevel=3)
            self._places = dict(enumerate(positions.tolist(), self._first))
        elif label is None:
            self._refuse_without_label(observations)

    def _refuse_without_label(self, observations: gym.Space[Any]) -> None:
        """Refuse observations of which the potential's space cannot make labels."""
        columns, size = self.potential.space.columns, int(np.prod(observations.shape or ()))
        if isinstance(observations, ARRAYS) and size == len(columns):
            return
        function, example = "", ""
        if isinstance(observations, (gym.spaces.Tuple, gym.spaces.Text)):
            function = "potential.space.label"
        elif isinstance(observations, gym.spaces.Dict):
            parts = "[seen[name] for name in potential.space.columns]"
            example = f", such as lambda seen: potential.space.label({parts})"
        raise ArgumentError(
            f"Observations of {observations} cannot be states made of {', '.join(columns)}. Pass "
            f"label={function}, a function from an observation to a state's label{example}."
        )

    def label(self, observation: Any) -> Label:
        """Return the label of an observation, whether the potential knows it or not."""
        if self._given is not None:
            return plain(self._given(observation))
        if self._own_states:
            return self._own_states[int(observation) - self._first]
        return self.potential.space.label(observation)

    def place(self, observation: Any) -> int:
        """Return the position of an observation's state; `UNSEEN` if the potential lacks it."""
        if self._places is None:
            return self.potential.space.find(self.label(observation))
        place = self._places.get(int(observation))
        if place is None:
            place = self.potential.space.find(self.label(observation))
            self._places[int(observation)] = place
        return place

    def is_unseen(self, place: int) -> bool:
        """Return whether a place is that of states which the potential does not know."""
        return place == UNSEEN

    def look_up(self, observation: Any, h: int) -> tuple[int, float]:
        """Return an observation's place and its phi at step h."""
        place = self.place(observation)
        if place == UNSEEN and not self._warned:
            self._warned = True
            warn_user(
                f"The potential does not know the state of observation {observation!r}. This state "
                "and other unknown ones get its value for unseen states, without more warnings. If "
                "there are many, look at the columns and bins of potential.space, or pass label=.",
                ShapingWarning,
            )
        return place, self.phi(place, h)

    def look_up_all(self, observations: Sequence[Any], steps: Sequence[int]) -> list[Found]:
        """Return what `look_up` does for each observation, at one step each."""
        return [self.look_up(one, h) for one, h in zip(observations, steps, strict=True)]

    def phi(self, place: int, h: int) -> float:
        """Return phi of a place at step h; 0 beyond the horizon of a potential with steps."""
        value = self._rows[h if h < self._last else self._last][place]
        if value != value:
            raise UnknownNameError(
                "The agent met a state that the potential does not know, and the potential has no "
                "value for unseen states."
            )
        return value


class ObservationLookup:
    """Makes the array that a potential of observations takes; its place is that array."""

    def __init__(
        self, potential: ObservationPotential, facts: EnvironmentFacts, label: Any, observe: Any
    ) -> None:
        """Match a potential with an environment; `label` and `observe` are options."""
        if label is not None:
            raise ArgumentError("This is a potential of observations, not states: pass observe=.")
        self.potential, self._observe, self._checked = potential, observe, False
        if observe is None:
            potential.check_observations(facts.observations)

    def place(self, observation: Any) -> npt.NDArray[Any]:
        """Return the array that the potential takes for an observation."""
        if self._observe is None:
            return observation  # type: ignore[no-any-return]
        array = np.asarray(self._observe(observation))
        if not self._checked:
            try:
                self.potential.check_observation(array)
            except ArgumentError as error:
                raise ArgumentError(f"What observe= returns does not fit. {error}") from None
            self._checked = True
        return array

    def is_unseen(self, place: npt.NDArray[Any]) -> bool:
        """Return False: the function has a value for every array."""
        return False

    def look_up(self, observation: Any, h: int) -> tuple[npt.NDArray[Any], float]:
        """Return the array of an observation and its phi at step h."""
        place = self.place(observation)
        return place, self.phi(place, h)

    def look_up_all(self, observations: Sequence[Any], steps: Sequence[int]) -> list[Found]:
        """Return what `look_up` does for each observation: one call of the potential."""
        if not observations:
            return []
        places = np.array([self.place(one) for one in observations])
        values = self.potential.values(places, np.asarray(steps))
        pairs = zip(places, values.tolist(), strict=True)
        return [(place, self._known(place, value)) for place, value in pairs]

    def phi(self, place: npt.NDArray[Any], h: int) -> float:
        """Return phi of an array at step h; 0 beyond the horizon of a potential with steps."""
        return self._known(place, self.potential.value(place, h))

    def _known(self, place: npt.NDArray[Any], value: float) -> float:
        """Return phi, and refuse it if it is NaN."""
        if value != value:
            raise DataError(
                f"The potential of an observation is NaN: {np.asarray(place)!r}. If it holds NaN, "
                "look at the environment, else at the potential."
            )
        return value
