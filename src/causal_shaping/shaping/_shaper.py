"""What the wrappers, and the learners, need to know of an environment and its potential.

- `Shaper`: what potentials of states and of observations have in common; `StateShaper` and `ObservationShaper` turn
  observations into what the potential takes.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import iterate

from causal_shaping._checks import check_choice, check_discount
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import UNKNOWN, Label, Space
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.shaping._actions import Numbers, match_actions, space_of
from causal_shaping.shaping.formula import TIME_LIMITS
from causal_shaping.shaping.monitor import Monitor

if TYPE_CHECKING:
    from causal_shaping.shaping._recording import Recording


class Shaper(ABC):
    """A potential, its discount, and how observations become places in it: what the potential takes instead of them.

    A place is a position in a table of states, or an array.

    Attributes:
        potential: the potential.
        bootstrap: whether the potential stays where an episode is truncated.
        discount: that of the shaping.
        numbers: the environment's actions.
        actions: the label that each of them has in the logs; None if that cannot be told.
        named: whether it is known which is which.
        restricted: whether the potential claims that some actions are not admissible in some states.
    """

    restricted = False

    def __init__(
        self,
        env: Any,
        actions: gym.Space[Any],
        observations: gym.Space[Any],
        potential: Any,
        *,
        time_limit: str,
        discount: float | None,
        label: Any,
        observe: Any,
        names: Sequence[Any] | None,
    ) -> None:
        check_choice("time_limit", time_limit, TIME_LIMITS)
        self.potential: Potential | ObservationPotential = potential
        self.bootstrap = time_limit == "bootstrap"
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
        self.numbers = Numbers(actions)
        self._discrete = isinstance(actions, gym.spaces.Discrete)
        self._taken: dict[int, int] = {}
        self._match(space_of(env), observations, label, observe, names)

    @abstractmethod
    def _match(
        self, own: Space | None, observations: gym.Space[Any], label: Any, observe: Any, names: Sequence[Any] | None
    ) -> None:
        """Match the potential with an environment's own space, if it has one, its observations and its actions."""

    def _name_actions(
        self, known: Sequence[Label], own: Space | None, names: Sequence[Any] | None, *, claims: bool, verb: str
    ) -> None:
        """Find the labels of the environment's actions among those that are known; see `match_actions`."""
        self._known = list(known)
        self.actions = match_actions(known, own, self.numbers.all, claims=claims, names=names, verb=verb)
        numbered = all(isinstance(label, int) for label in known)
        self.named = self.actions is not None and (numbered or own is not None or names is not None)

    @abstractmethod
    def place(self, observation: Any) -> Any:
        """Return the place of an observation."""

    @abstractmethod
    def met(self, observation: Any) -> Any:
        """Return the place of an observation whose potential is needed."""

    @abstractmethod
    def all_met(self, observations: Any, space: gym.Space[Any], final: BoolArray) -> npt.NDArray[Any]:
        """Return the places of several observations; anything for `final` ones, whose potential is not needed."""

    def knows(self, place: Any) -> bool:
        """Return whether the potential knows a place, or has the value of unseen states for it."""
        return True

    @abstractmethod
    def meet(self, observation: Any, h: int) -> tuple[Any, float]:
        """Return the place of an observation whose potential is needed, and the potential, which must be known."""

    @abstractmethod
    def phis(self, places: npt.NDArray[Any], h: LongArray) -> FloatArray:
        """Return the potential of several places at one step each; NaN, or any number, where it is not known."""

    @abstractmethod
    def refuse_unknown(self, place: Any) -> NoReturn:
        """Say that the potential of a place is not known."""

    @abstractmethod
    def recording(self, environments: int) -> Recording:
        """Return what keeps the steps of environments."""

    def monitor(self, environments: int) -> Monitor | None:
        """Return what tests the potential's claims; None if it claims nothing that could be tested."""
        return None

    def compare(self, place: Any, info: Mapping[str, Any]) -> None:
        """Compare the actions that an environment admits with those of the potential."""
        raise NotImplementedError  # only called if some are restricted

    def refuse_inadmissible(self, place: Any, action: Any) -> None:
        """Refuse an action that the potential excludes."""
        raise NotImplementedError  # only called if some are restricted

    def need_names(self) -> None:
        """Refuse to guess which of the potential's actions is which of the environment's."""
        if not self.named:
            raise ArgumentError(
                f"The logs name their actions ({', '.join(map(str, self._known))}), and the environment numbers its "
                f"{len(self.numbers.all)}. Say which is which: give actions, the names in the order of the numbers."
            )

    def taken(self, action: Any) -> int:
        """Return the position of an action among those of the potential; 0 if which is which cannot be told."""
        if not self.named:
            return 0
        number = int(action) - self.numbers.all.start if self._discrete else self.numbers.position(action)
        found = self._taken.get(number)
        if found is None:  # one by one: actions of many parts can be more than can be listed
            assert self.actions is not None
            label = self.actions[number]
            found = self._taken[number] = self._known.index(label) if label in self._known else UNKNOWN
        return found

    def all_taken(self, actions: Any, space: gym.Space[Any]) -> LongArray:
        """Return the positions of the actions of several environments."""
        if not self._discrete:
            return np.array([self.taken(action) for action in iterate(space, actions)], dtype=np.int64)
        first = self.numbers.all.start
        return self._takes[np.subtract(actions, first) if first else actions]  # type: ignore[no-any-return]

    @cached_property
    def _takes(self) -> LongArray:
        return np.array([self.taken(number) for number in self.numbers.all], dtype=np.int64)


def _warn(message: str) -> None:
    """Warn where a wrapper was made: outside of the shaper's constructor, what sets it up, and the wrapper's own."""
    warnings.warn(message, ShapingWarning, stacklevel=5)


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
