"""What a learner needs to know of a world or an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_horizon
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, DataError, ModelError
from causal_shaping.shaping.actions import (
    admitted,
    compare_admissible,
    match_actions,
    refuse_excluded,
    require_discrete,
)
from causal_shaping.shaping.environments import space_of, time_limit_of, wrappers_of
from causal_shaping.shaping.wrappers import ShapeReward
from causal_shaping.worlds import World


class Problem:
    """A world or an environment to learn in.

    Attributes:
        name: the world's, or the environment's.
        world: the world, also that of an environment which has one; None for any other environment.
        env: the environment; None for a world.
        space: the states and actions.
        actions: the environment's number of each action of the space.
        admissible: bool [states, actions], the actions that exist, as far as the space and the environment told.
        horizon: the number of steps after which an episode is truncated.
    """

    def __init__(
        self, world: World | gym.Env[Any, Any], potential: Posterior | Potential | Ceilings | None, horizon: int | None
    ) -> None:
        self.name, self.world = name_of(world), world_of(world)
        self.env: gym.Env[Any, Any] | None = None if isinstance(world, World) else world
        own = self.world.space if self.world is not None else None
        self.first = self._first_action = 0
        if self.env is not None:
            require_discrete(self.env.action_space, (gym.spaces.Discrete,))
            if any(isinstance(one, ShapeReward) for one in wrappers_of(self.env)):
                raise ArgumentError("The learner shapes the reward itself: pass the environment without ShapeReward.")
            own = space_of(self.env)
            if own is not None and not isinstance(self.env.observation_space, gym.spaces.Discrete):
                raise ArgumentError(
                    f"The observations of {self.name} are not its states. Make it with observation='state'."
                )
            self.first = int(getattr(self.env.observation_space, "start", 0))
            self._first_action = _numbers(self.env.action_space).start
        # The observations of an environment that has a space are numbers of states; those of any other are labels.
        self.numbered = own is not None
        self.space: Space = own if own is not None else self._labelled(potential)
        if potential is not None:
            numbers = range(len(self.space.actions)) if self.env is None else _numbers(self.env.action_space)
            match_actions(potential.space.actions, own, numbers, claims=bool(potential.assumptions))
            if own is not None and potential.assumptions:
                compare_admissible(potential.space, own)
        self._claims = bool(potential is not None and potential.assumptions)
        self.admissible: BoolArray = self.space.is_admissible.copy()
        self._asked: set[int] = set()
        self.actions = range(len(self.space.actions)) if self.env is None else self._actions(self.env.action_space)
        own_limit = world.horizon if isinstance(world, World) else time_limit_of(world)
        limit = own_limit if horizon is None else horizon
        if limit is None:
            raise ArgumentError(f"{self.name} has no time limit: pass horizon= or --horizon, the steps of an episode.")
        self.horizon = check_horizon(limit)

    def _labelled(self, potential: Posterior | Potential | Ceilings | None) -> Space:
        assert self.env is not None
        if potential is not None:
            return potential.space
        if isinstance(self.env.observation_space, gym.spaces.Discrete):
            return Space(_numbers(self.env.observation_space), _numbers(self.env.action_space))
        raise ArgumentError(
            f"The observations of {self.name} are not numbers of states: pass ceilings, or a potential whose space "
            "knows them, such as Potential.zero(counts) to learn without logs."
        )

    def _actions(self, actions: Any) -> Sequence[int]:
        """Return the environment's number of each action of the space: by label if that is a number, else in order."""
        labels, known = self.space.actions, _numbers(actions)
        by_label = not self.numbered and all(isinstance(label, int) for label in labels)
        if len(labels) != len(known) or (by_label and set(labels) != set(known)):
            raise ArgumentError(
                f"The actions are {', '.join(map(str, labels))}, but {self.name} takes {known.start} to "
                f"{known.stop - 1}. Declare all of them, also those that no log holds, when the logs are counted."
            )
        return [int(label) for label in labels] if by_label else list(known)  # type: ignore[arg-type]

    def gaps(self, layers: int, step_indexed: bool, discount: float) -> FloatArray:
        """Return V* - Q*: float64 [layers, states, actions]; NaN if the optimum does not exist or is not known."""
        shape = (layers, len(self.space.states), len(self.space.actions))
        try:
            if self.world is not None:
                return self.world.model.gaps(self.horizon if step_indexed else None, discount).reshape(shape)
        except ModelError:
            pass  # there is no optimum
        return np.full(shape, np.nan)

    def excluded(self, s: int, info: Mapping[str, Any]) -> BoolArray | None:
        """Return which actions an environment does not admit in a state; None if it has told before, or does not."""
        if s in self._asked:
            return None
        self._asked.add(s)
        numbered = admitted(info, len(self.actions))
        if numbered is None:
            return None
        mask = numbered[np.array(self.actions) - self._first_action]
        if self._claims and not self.numbered:
            refuse_excluded(self.space, s, mask, self.space.actions)
        self.admissible[s] &= mask
        return np.asarray(~self.admissible[s])

    def find(self, observation: Any) -> int:
        """Return the number of a state, `UNSEEN` if the learner does not know it."""
        if self.numbered:
            return int(observation) - self.first
        return self.space.find(self.space.label(observation))

    def ended(self, observation: Any) -> int:
        """Return the number of a state that an episode ended in: nobody acts there, and it may have no label."""
        try:
            return self.find(observation)
        except DataError:
            return UNSEEN

    def position(self, observation: Any) -> int:
        """Return the number of a state that was met."""
        place = self.find(observation)
        if place == UNSEEN:
            raise ArgumentError(f"{self.name} shows {observation!r}, which is not one of the learner's states.")
        return place


def name_of(world: World | gym.Env[Any, Any]) -> str:
    """Return the name of a world, or the id of an environment, or its class."""
    if isinstance(world, World):
        return world.name
    if not isinstance(world, gym.Env):
        raise ArgumentError(f"{world!r} is neither a world nor an environment. Use load_world(...) or gymnasium.make.")
    return world.spec.id if world.spec is not None else type(world.unwrapped).__name__


def world_of(world: World | gym.Env[Any, Any]) -> World | None:
    """Return a world as it is, or that of an environment which has one."""
    held = world if isinstance(world, World) else getattr(world.unwrapped, "world", None)
    return held if isinstance(held, World) else None


def _numbers(space: Any) -> range:
    return range(int(space.start), int(space.start + space.n))
