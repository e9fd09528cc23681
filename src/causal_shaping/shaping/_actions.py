"""The actions of an environment beside those that a potential was made for.

A ceiling is a maximum over the actions of its space: an environment that has one more, or admits one where the space
excludes it, can be worth more than the ceiling says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping.data.arrays import BoolArray
from causal_shaping.data.space import UNKNOWN, Label, Space, plain
from causal_shaping.errors import ArgumentError

DISCRETE = (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
MASK, ADMISSIBLE = "action_mask", "admissible_actions"
"""Where an environment's `info` says which actions a state admits: a flag for each, or a list of their numbers."""


def require_discrete(actions: gym.Space[Any], kinds: tuple[type, ...] = DISCRETE) -> None:
    """Refuse continuous actions."""
    if not isinstance(actions, kinds):
        raise ArgumentError(
            f"The actions are {actions}, but only discrete actions are supported. Cut continuous ones into bins, each "
            "with a number: gymnasium.wrappers.TransformAction makes an environment that takes those numbers."
        )


def space_of(env: Any) -> Space | None:
    """Return the space of an environment that has one."""
    held = getattr(env.unwrapped, "space", None)
    return held if isinstance(held, Space) else None


class Numbers:
    """The numbers of an environment's actions; those of several parts are counted with the last part fastest."""

    def __init__(self, actions: Any) -> None:
        self.sizes: tuple[int, ...] = (2,) * int(np.prod(actions.shape))  # of a MultiBinary
        self.start: Any = getattr(actions, "start", 0)
        if isinstance(actions, gym.spaces.Discrete):
            self.sizes = (int(actions.n),)
        elif isinstance(actions, gym.spaces.MultiDiscrete):
            self.sizes, self.start = tuple(np.ravel(actions.nvec).tolist()), np.ravel(actions.start)
        self.single = len(self.sizes) == 1
        first = int(np.ravel(self.start)[0]) if self.single else 0
        self.all = range(first, first + min(math.prod(self.sizes), sys.maxsize))  # no range is longer

    def position(self, action: Any) -> int:
        """Return the place of an action among all of them."""
        if self.single:
            return int(np.ravel(action)[0]) - self.all.start
        return int(np.ravel_multi_index(tuple(np.ravel(action) - self.start), self.sizes))


def match_actions(
    known: Sequence[Label],
    own: Space | None,
    numbers: range,
    *,
    claims: bool,
    names: Sequence[Any] | None = None,
    verb: str = "count",
) -> Sequence[Label] | None:
    """Return the label that each action of an environment has in the logs; None if that cannot be told.

    Without names, actions that are named in the logs and numbered in the environment are taken to be in one order.

    Args:
        known: the potential's actions.
        own: the environment's space, if it has one: its names are compared; otherwise its numbers are.
        numbers: the environment's numbers.
        claims: whether the potential claims something of these actions, as ceilings do: one that it does not know is
            an error then.
        names: the label of each of the environment's actions, as the user gives them.
        verb: the function that takes declared actions, for the message.
    """
    labels: Sequence[Label] | None = numbers
    if names is not None:
        labels = [plain(name) for name in names]
        if len(labels) != len(numbers):
            raise ArgumentError(f"actions names {len(labels)} actions, but the environment has {len(numbers)}.")
    elif own is not None and len(own.actions) == len(numbers):
        labels = own.actions
    elif all(isinstance(label, int) for label in known):
        ordered: list[Any] = sorted(known)
        if len(ordered) == len(numbers) == ordered[-1] - ordered[0] + 1:  # the logs may count from another number
            labels = ordered
    elif len(known) >= len(numbers):
        labels = known if len(known) == len(numbers) else None
    if claims and labels is not None:
        held = set(known)
        missing = next((label for label in labels if label not in held), None)
        if missing is not None:
            names = f"range({len(numbers)})" if isinstance(labels, range) else str(list(labels))
            raise ArgumentError(
                f"The environment has {len(labels)} actions, {missing!r} among them, but the potential's ceilings are "
                f"over {len(known)}: {', '.join(map(str, known))}. An action that they leave out can be worth more "
                f"than they say. Declare all of them, also those that no log holds: {verb}(..., actions={names})."
            )
    return labels


def admitted(info: Mapping[str, Any], actions: int) -> BoolArray | None:
    """Return which actions an environment's `info` says that its state admits: bool [actions]; None if it is silent."""
    if isinstance(info.get(MASK), tuple):  # a mask for each part: which combinations exist is not told
        return None
    if info.get(MASK) is not None:
        mask = np.ravel(np.asarray(info[MASK])).astype(bool)
    elif info.get(ADMISSIBLE) is not None:
        mask = np.isin(np.arange(actions), np.asarray(info[ADMISSIBLE], dtype=np.int64))
    else:
        return None
    return mask if mask.shape == (actions,) else None


def refuse_excluded(space: Space, state: int, admitted: BoolArray, labels: Sequence[Label]) -> None:
    """Refuse an environment that admits an action in a state where the potential's space excludes it.

    Args:
        space: the potential's.
        state: the position of a state in it.
        admitted: bool [actions], whether the environment admits each of its actions there.
        labels: the environment's actions; the space holds them all.
    """
    held = space.is_admissible[state]
    excluded = [
        label for label, here in zip(labels, admitted, strict=True) if here and not held[space.find_action(label)]
    ]
    if excluded:
        raise ArgumentError(
            f"In state {space.states[state]!r} the environment admits {', '.join(map(str, excluded))}, but the "
            "potential's space excludes it there: its ceilings can be too low. Declare what the environment admits "
            "(admissible) when the logs are counted."
        )


def compare_admissible(space: Space, own: Space) -> None:
    """Refuse an environment whose own space admits an action where the potential's space excludes it."""
    if space.admissible:
        for s, state in enumerate(space.find_all(own)):
            if state != UNKNOWN and own.states[s] not in own.terminal:
                refuse_excluded(space, state, own.is_admissible[s], own.actions)
