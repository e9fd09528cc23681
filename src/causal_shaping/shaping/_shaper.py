"""What the wrappers, and the learners, need to know of an environment and its potential."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import iterate

from causal_shaping._checks import check_choice, check_discount
from causal_shaping.data.arrays import BoolArray, LongArray
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import UNKNOWN, Label as StateLabel, Space, plain
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.shaping._actions import (
    Numbers,
    admitted,
    compare_admissible,
    match_actions,
    refuse_excluded,
    space_of,
)
from causal_shaping.shaping.formula import TIME_LIMITS

Label = Callable[[Any], Any]


class Shaper:
    """The potential, its discount, and how observations become positions in it."""

    def __init__(
        self,
        env: Any,
        actions: gym.Space[Any],
        observations: gym.Space[Any],
        potential: Potential,
        time_limit: str,
        discount: float | None,
        label: Label | None,
        names: Sequence[Any] | None = None,
    ) -> None:
        check_choice("time_limit", time_limit, TIME_LIMITS)
        self.potential, self.bootstrap = potential, time_limit == "bootstrap"
        self.discount = potential.discount if discount is None else discount
        check_discount(self.discount)
        if self.discount != potential.discount:
            _warn(
                f"Rewards are shaped with a discount of {self.discount:g}, but the potential was made for "
                f"{potential.discount:g}."
            )
        limit = time_limit_of(env)
        if potential.horizon is not None and limit is not None and limit != potential.horizon:
            _warn(
                f"The potential has {potential.horizon} steps, but an episode lasts up to {limit}. Compute it for that "
                "horizon, or use one without steps: ceilings.potential(step_indexed=False)."
            )
        self.numbers, own = Numbers(actions), space_of(env)
        claims = bool(potential.assumptions)
        self.actions = match_actions(potential.space, own, self.numbers.all, claims=claims, names=names)
        numbered = all(isinstance(label, int) for label in potential.space.actions)
        self.named = self.actions is not None and (numbered or own is not None or names is not None)
        self._discrete = isinstance(actions, gym.spaces.Discrete)
        self._taken: dict[int, int] = {}
        # What an environment says of its actions is compared where the potential claims that some are not admissible.
        self.restricted = bool(claims and potential.space.admissible and self.actions is not None)
        self._compared = {UNSEEN}
        if self.restricted and own is not None:
            compare_admissible(potential.space, own)
        self._label, self._warned = label, False
        self._by_number = self._numbers(own, observations) if label is None else None
        self._own_states = () if own is None or self._by_number is None else own.states
        # Plain lists: an environment steps one by one, and NumPy takes longer for one number than a list.
        self._number_list = None if self._by_number is None else self._by_number.tolist()
        self._start = int(getattr(observations, "start", 0))
        self._rows = potential.rows()

    def _numbers(self, space: Space | None, observations: gym.Space[Any]) -> LongArray | None:
        """Return the positions of observations 0, 1, ... of an environment that has a space; None for any other."""
        if space is not None:
            if isinstance(observations, gym.spaces.Discrete):
                return self.potential.match(space, stacklevel=5)
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
        return None

    def label(self, observation: Any) -> StateLabel:
        """Return the label of an observation, whether the potential knows it or not."""
        if self._own_states:
            return self._own_states[int(observation) - self._start]
        if self._label is not None:
            return plain(self._label(observation))
        return self.potential.space.label(observation)

    def position(self, observation: Any) -> int:
        """Return the position of an observation in the potential."""
        if self._number_list is not None:
            return int(self._number_list[observation - self._start])
        if self._label is not None:
            return self.potential.position_of(self._label(observation))
        return self.potential.position(observation)

    def met(self, observation: Any) -> int:
        """Return the position of an observation whose potential is needed; the first unknown one gives a warning."""
        found = self.position(observation)
        if found == UNSEEN and not self._warned:
            self._warned = True
            _warn(
                f"The potential does not know the state of observation {observation!r}; it gets the value for unseen "
                "states, and so will others, without further warnings. If there are many, look at the columns and bins "
                "of potential.space, or pass label=.",
                stacklevel=4,
            )
        return found

    def all_met(self, observations: Any, space: gym.Space[Any], needed: BoolArray) -> LongArray:
        """Return the positions of several observations; those whose potential is not `needed` give no warning."""
        if self._by_number is not None:
            found = np.array(self._by_number[np.asarray(observations) - self._start])
            if self._warned or not ((found == UNSEEN) & needed).any():
                return found
        each = zip(iterate(space, observations), needed, strict=True)
        return np.array([self.met(one) if known else self.position(one) for one, known in each], dtype=np.int64)

    def compare(self, position: int, info: Mapping[str, Any]) -> None:
        """Compare the actions that an environment admits in a state with those of the space, once for each state."""
        if position not in self._compared:
            assert self.actions is not None
            self._compared.add(position)
            mask = admitted(info, len(self.actions))
            if mask is not None:
                self.need_names()
                refuse_excluded(self.potential.space, position, mask, self.actions)

    def need_names(self) -> None:
        """Refuse to guess which of the potential's actions is which of the environment's."""
        if not self.named:
            names = ", ".join(map(str, self.potential.space.actions))
            raise ArgumentError(
                f"The logs name their actions ({names}), and the environment numbers its {len(self.numbers.all)}. Say "
                "which is which: actions=[...], the names in the order of the numbers."
            )

    def refuse_inadmissible(self, position: int, action: Any) -> None:
        """Refuse an action that the potential's space excludes in a state."""
        space = self.potential.space
        if self.named and 0 <= position < len(space.states):
            assert self.actions is not None
            label = self.actions[self.numbers.position(action)]
            number = space.find_action(label)
            if number != UNKNOWN and not space.is_admissible[position, number]:
                raise ArgumentError(
                    f"Action {label!r} is not admissible in state {space.states[position]!r} of the potential's space. "
                    "Choose among the admissible ones, potential.space.admissible, or declare it when logs are counted."
                )

    def taken(self, action: Any) -> int:
        """Return the position of an action in the potential's space; 0 if which is which cannot be told."""
        if not self.named:
            return 0
        number = int(action) - self.numbers.all.start if self._discrete else self.numbers.position(action)
        found = self._taken.get(number)
        if found is None:  # one by one: actions of many parts can be more than can be listed
            assert self.actions is not None
            found = self._taken[number] = self.potential.space.find_action(self.actions[number])
        return found

    def phi(self, position: int, h: int) -> float:
        """Return the potential of one state; 0 beyond the horizon."""
        value = self._rows[min(h, len(self._rows) - 1)][position]
        return value if value == value else float(self.potential.at(position, h))  # NaN: an error that says why


def _warn(message: str, stacklevel: int = 5) -> None:
    """Warn where a wrapper was made: outside of `Shaper`, what sets it up, and the wrapper's own constructor."""
    warnings.warn(message, ShapingWarning, stacklevel=stacklevel)


def wrappers_of(env: Any) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """Give the wrappers around an environment, from the outside."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def time_limit_of(env: Any) -> int | None:
    """Return the number of steps after which an environment cuts an episode, None if it does not say."""
    limits = [getattr(env.unwrapped, "horizon", None), None if env.spec is None else env.spec.max_episode_steps]
    limits += [one._max_episode_steps for one in wrappers_of(env) if isinstance(one, gym.wrappers.TimeLimit)]
    return min((int(limit) for limit in limits if isinstance(limit, (int, np.integer))), default=None)
