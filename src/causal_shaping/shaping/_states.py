"""Potentials of states in an environment: observations become positions in a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import iterate

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import UNKNOWN, Label as StateLabel, Space, plain
from causal_shaping.errors import ArgumentError, ShapingWarning, UnknownNameError
from causal_shaping.shaping._actions import admitted, compare_admissible, refuse_excluded
from causal_shaping.shaping._kernels import take
from causal_shaping.shaping._recording import StateRecording
from causal_shaping.shaping._shaper import Shaper
from causal_shaping.shaping.monitor import Monitor

Label = Callable[[Any], Any]

MOST_NUMBERS = 100_000
"""Of so many numbered observations the positions are looked up beforehand, which takes some microseconds each."""


class StateShaper(Shaper):
    """How observations become positions in the table of a potential."""

    potential: Potential

    def _match(
        self, own: Space | None, observations: gym.Space[Any], label: Any, observe: Any, names: Sequence[Any] | None
    ) -> None:
        if observe is not None:
            raise ArgumentError("observe= is for potentials of observations. This is one of states: pass label=.")
        potential = self.potential
        claims = bool(potential.assumptions)
        self._name_actions(potential.space.actions, own, names, claims=claims, verb="count")
        # What an environment says of its actions is compared where the potential claims that some are not admissible.
        self.restricted = bool(claims and potential.space.admissible and self.actions is not None)
        self._compared = {UNSEEN}
        if self.restricted and own is not None:
            compare_admissible(potential.space, own)
        self._label, self._find, self._warned = label, potential.space.find, False
        self._by_number = self._numbers(own, observations) if label is None else None
        self._own_states = () if own is None or self._by_number is None else own.states
        # Plain lists: an environment steps one by one, and NumPy takes longer for one number than a list.
        self._number_list = None if self._by_number is None else self._by_number.tolist()
        self._start = int(getattr(observations, "start", 0))
        self._all_known = self._number_list is not None and UNSEEN not in self._number_list
        self._rows = potential.rows()
        self._table = np.array(self._rows)

    def _numbers(self, space: Space | None, observations: gym.Space[Any]) -> LongArray | None:
        """Return the positions of numbered observations, from the first; None if they are others, or too many."""
        if space is not None:
            if isinstance(observations, gym.spaces.Discrete):
                return self.potential.match(space, stacklevel=6)
            raise ArgumentError(
                "This environment's observations are not its states. Make it with observation='state', or pass label=, "
                "a function from an observation to a state's label."
            )
        columns = self.potential.space.columns
        fits = isinstance(observations, (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete))
        if not fits or int(np.prod(observations.shape or ())) != len(columns):
            several = isinstance(observations, (gym.spaces.Tuple, gym.spaces.Text))
            example = "such as lambda seen: potential.space.label([seen[name] for name in potential.space.columns])"
            raise ArgumentError(
                f"Observations of {observations} cannot be states made of {', '.join(columns)}. Pass "
                f"label={'potential.space.label' if several else ''}, a function from an observation to a state's label"
                f"{', ' + example if isinstance(observations, gym.spaces.Dict) else ''}."
            )
        if isinstance(observations, gym.spaces.Discrete) and observations.n <= MOST_NUMBERS:
            first = int(observations.start)
            return np.array([self.potential.position(first + k) for k in range(int(observations.n))], dtype=np.int64)
        return None

    def label(self, observation: Any) -> StateLabel:
        """Return the label of an observation, whether the potential knows it or not."""
        if self._own_states:
            return self._own_states[int(observation) - self._start]
        if self._label is not None:
            return plain(self._label(observation))
        return self.potential.space.label(observation)

    def place(self, observation: Any) -> int:
        """Return the position of an observation."""
        if self._label is not None:
            return self._find(self._label(observation))
        if self._number_list is not None:
            return int(self._number_list[observation - self._start])
        return self.potential.position(observation)

    def met(self, observation: Any) -> int:
        """Return the position of an observation whose potential is needed; the first unknown one gives a warning."""
        found = self.place(observation)
        if found == UNSEEN and not self._warned:
            self._warn_of_unseen(observation, stacklevel=5)
        return found

    def _warn_of_unseen(self, observation: Any, stacklevel: int) -> None:
        self._warned = True
        warnings.warn(
            f"The potential does not know the state of observation {observation!r}; it gets the value for unseen "
            "states, and so will others, without further warnings. If there are many, look at the columns and bins "
            "of potential.space, or pass label=.",
            ShapingWarning,
            stacklevel=stacklevel,
        )

    def meet(self, observation: Any, h: int) -> tuple[int, float]:
        """Return the position of an observation, and its potential."""
        numbers = self._number_list
        place = self.place(observation) if numbers is None else numbers[observation - self._start]
        if place == UNSEEN and not self._warned:
            self._warn_of_unseen(observation, stacklevel=4)
        rows = self._rows
        value = rows[h if h < len(rows) else -1][place]
        if value != value:
            self.refuse_unknown(place)
        return place, value

    def all_met(self, observations: Any, space: gym.Space[Any], final: BoolArray) -> LongArray:
        """Return the positions of several observations; `final` ones, whose potential does not count, do not warn."""
        if self._by_number is not None:
            numbers = np.subtract(observations, self._start) if self._start else observations
            found: LongArray = self._by_number[numbers]
            if self._all_known or self._warned or not ((found == UNSEEN) & ~final).any():
                return found
        each = zip(iterate(space, observations), final.tolist(), strict=True)
        return np.array([self.place(one) if over else self.met(one) for one, over in each], dtype=np.int64)

    def compare(self, place: int, info: Mapping[str, Any]) -> None:
        """Compare the actions that an environment admits in a state with those of the space, once for each state."""
        if place not in self._compared:
            assert self.actions is not None
            self._compared.add(place)
            mask = admitted(info, len(self.actions))
            if mask is not None:
                self.need_names()
                refuse_excluded(self.potential.space, place, mask, self.actions)

    def refuse_inadmissible(self, place: int, action: Any) -> None:
        """Refuse an action that the potential's space excludes in a state."""
        space = self.potential.space
        if self.named and 0 <= place < len(space.states):
            assert self.actions is not None
            label = self.actions[self.numbers.position(action)]
            number = space.find_action(label)
            if number != UNKNOWN and not space.is_admissible[place, number]:
                raise ArgumentError(
                    f"Action {label!r} is not admissible in state {space.states[place]!r} of the potential's space. "
                    "Choose among the admissible ones, potential.space.admissible, or declare it when logs are counted."
                )

    def knows(self, place: int) -> bool:
        """Return whether the potential knows a state."""
        return place != UNSEEN

    def phis(self, places: npt.NDArray[Any], h: LongArray) -> FloatArray:
        """Return the potential of several states."""
        found = np.empty(len(places))
        take(self._table, places, h, found)
        return found

    def refuse_unknown(self, place: int) -> NoReturn:
        """Say that a state is not known, and has no value."""
        raise UnknownNameError("The potential does not know a state that was met, and has no value for unseen states.")

    def recording(self, environments: int) -> StateRecording:
        """Return what keeps the steps of environments, with states and actions by label."""
        return StateRecording(self, environments)

    def monitor(self, environments: int) -> Monitor | None:
        """Return the monitor of ceilings; None for other potentials."""
        if self.potential.kind != "ceiling":
            return None
        return Monitor(self.potential, by_action=self.named, environments=environments)
