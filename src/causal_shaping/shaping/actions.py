"""The actions of an environment beside those of a potential, and who refuses those that differ.

A ceiling is a maximum over the actions of its space. An environment that has one more action, or
that admits one where the space excludes it, can be worth more than the ceiling says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping.data.arrays import BoolArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import UNKNOWN, Label, Space, plain
from causal_shaping.errors import ArgumentError

DISCRETE = (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""Gymnasium's spaces whose actions can be counted."""

MASK, ADMISSIBLE = "action_mask", "admissible_actions"
"""Where `info` names the actions that a state admits: flags of all, or a list of their numbers."""


class EnvironmentActions:
    """The actions of an environment, and which of the potential's actions each of them is.

    Attributes:
        numbers: the environment's numbers of its actions; those of several parts are counted with
            the last part fastest. Empty if the actions are not discrete.
        labels: the label that each action has in the logs; None if that cannot be told.
        named: whether each action's label is known for certain.
        restricted: whether the potential claims that some states exclude actions.
    """

    def __init__(
        self,
        potential: Potential | ObservationPotential,
        actions: gym.Space[Any],
        own: Space | None,
        names: Sequence[Any] | None,
    ) -> None:
        """Match the actions of a potential and of an environment.

        Args:
            potential: the potential. One that claims nothing about actions fits any.
            actions: the environment's `action_space`.
            own: the environment's space, if it has one.
            names: the label of each of the environment's actions, as the user gives them.
        """
        self.actions, self.space, verb = actions, None, "fit_ceilings"
        if isinstance(potential, Potential):
            self.space, verb = potential.space, "count"  # a potential of states may exclude actions
            known, claims = potential.space.actions, bool(potential.assumptions)
        else:
            known, claims = potential.actions or (), potential.actions is not None
        self.known: Sequence[Label] = known
        self.labels: Sequence[Label] | None = None
        self.named = self.restricted = False
        self._compared = {UNKNOWN}
        bounds_actions = self.space is not None and potential.kind == "ceiling"
        if claims or bounds_actions or names is not None:
            require_discrete(actions)
        if not isinstance(actions, DISCRETE):
            return
        self.numbers = self._count(actions)
        self.known, self.labels = known or self.numbers, self.numbers
        numbered = all(isinstance(label, int) for label in known)
        if numbered and self.space is None:
            own = None  # a fit knows actions by number, also those that the environment names
        if known or names is not None:
            options: Any = {"claims": claims, "names": names, "verb": verb}
            self.labels = match_actions(self.known, own, self.numbers, **options)
        certain = numbered or own is not None or names is not None
        self.named = self.labels is not None and certain
        self.restricted = bool(claims and self.space and self.space.admissible and self.labels)
        if self.restricted and self.space is not None and own is not None:
            compare_admissible(self.space, own)

    def _count(self, actions: Any) -> range:
        """Return the numbers of an environment's actions, and keep how to count them."""
        self._sizes: Any = (2,) * int(np.prod(actions.shape))  # those of a MultiBinary
        self._start: Any = np.ravel(getattr(actions, "start", 0))
        if isinstance(actions, gym.spaces.Discrete):
            self._sizes = (int(actions.n),)
        elif isinstance(actions, gym.spaces.MultiDiscrete):
            self._sizes = np.ravel(actions.nvec).tolist()
        first = 0
        if len(self._sizes) == 1:
            first = int(self._start[0])
        # Parts multiply: there can be more actions than the longest range has numbers.
        return range(first, first + min(math.prod(self._sizes), sys.maxsize))

    def label(self, action: Any) -> Label:
        """Return the label of an action; `need_names` must have passed."""
        assert self.labels is not None
        if isinstance(self.actions, gym.spaces.Discrete):
            return self.labels[int(action) - self.numbers.start]
        parts = tuple(np.ravel(action) - self._start)
        return self.labels[int(np.ravel_multi_index(parts, self._sizes))]

    def position(self, action: Any) -> int:
        """Return the position of an action in the potential's space; 0 if it cannot be told."""
        if not self.named or self.space is None:
            return 0
        return self.space.action_positions.get(self.label(action), UNKNOWN)

    def need_names(self) -> None:
        """Refuse to guess which of the potential's actions is which of the environment's."""
        require_discrete(self.actions)
        if not self.named:
            raise ArgumentError(
                f"The logs name their actions ({', '.join(map(str, self.known))}), and the "
                f"environment numbers its {len(self.numbers)}. Say which is which: give actions, "
                "the names in the order of the numbers."
            )

    def refuse_inadmissible(self, state: int, action: Any) -> None:
        """Refuse an action that the potential's space excludes in a state, given by position."""
        x, space = self.position(action), self.space
        if not self.named or x == UNKNOWN or space is None or not 0 <= state < len(space.states):
            return
        if not space.is_admissible[state, x]:
            raise ArgumentError(
                f"Action {space.actions[x]!r} is not admissible in state {space.states[state]!r} "
                "of the potential's space. Choose among the admissible ones, "
                "potential.space.admissible, or declare it when logs are counted."
            )

    def compare(self, state: int, info: Mapping[str, Any]) -> None:
        """Compare the actions that `info` admits in a state with the space's, once a state."""
        if state in self._compared or self.space is None or self.labels is None:
            return
        self._compared.add(state)
        mask = admitted(info, len(self.labels))
        if mask is not None:
            self.need_names()
            refuse_excluded(self.space, state, mask, self.labels)


def require_discrete(actions: gym.Space[Any], kinds: tuple[type, ...] = DISCRETE) -> None:
    """Refuse continuous actions."""
    if not isinstance(actions, kinds):
        raise ArgumentError(
            f"The actions are {actions}, but only discrete actions are supported. Cut continuous "
            "ones into bins with gymnasium.wrappers.TransformAction, so that each has a number."
        )


def match_actions(
    known: Sequence[Label],
    own: Space | None,
    numbers: range,
    *,
    claims: bool,
    names: Sequence[Any] | None = None,
    verb: str = "count",
) -> Sequence[Label] | None:
    """Return the label that each action of an environment has in the logs; None if unknown.

    Actions that are named in the logs and numbered in the environment are taken to be in one order.

    Args:
        known: the potential's actions.
        own: the environment's space, if it has one: its names are compared, otherwise its numbers.
        numbers: the environment's numbers.
        claims: whether the potential claims something about actions, as ceilings do. Then an action
            that it does not know is an error.
        names: the label of each of the environment's actions, as the user gives them.
        verb: the function that declares actions, for the message.
    """
    labels: Sequence[Label] | None = numbers
    if names is not None:
        labels = [plain(name) for name in names]
        if len(labels) != len(numbers):
            raise ArgumentError(
                f"actions= or --actions names {len(labels)} actions, but the environment has "
                f"{len(numbers)}."
            )
    elif own is not None and len(own.actions) == len(numbers):
        labels = own.actions
    elif all(isinstance(label, int) for label in known):
        ordered: list[Any] = sorted(known)
        if len(ordered) == len(numbers) == ordered[-1] - ordered[0] + 1:
            labels = ordered  # the same numbers, but the logs may count from another one
    elif len(known) == len(numbers):
        labels = known
    elif len(known) > len(numbers):
        labels = None
    if claims and labels is not None:
        counted = set(known)
        missing = next((label for label in labels if label not in counted), None)
        if missing is not None:
            declared = f"range({len(labels)})"
            if not isinstance(labels, range):
                declared = str(list(labels))
            raise ArgumentError(
                f"The environment has {len(labels)} actions, {missing!r} among them, but the "
                f"potential's ceilings are over {len(known)}: {', '.join(map(str, known))}. An "
                "action that they leave out can be worth more than they say. Declare all of them, "
                f"also those that no log holds: {verb}(..., actions={declared})."
            )
    return labels


def admitted(info: Mapping[str, Any], actions: int) -> BoolArray | None:
    """Return which actions `info` admits in its state: bool [actions]; None if it does not say."""
    mask = info.get(MASK)
    if isinstance(mask, tuple):  # a mask for each part does not say which combinations exist
        return None
    if mask is not None:
        mask = np.ravel(np.asarray(mask)).astype(bool)
    elif info.get(ADMISSIBLE) is not None:
        mask = np.isin(np.arange(actions), np.asarray(info[ADMISSIBLE], dtype=np.int64))
    if mask is None or mask.shape != (actions,):
        return None
    return np.asarray(mask)


def refuse_excluded(space: Space, state: int, mask: BoolArray, labels: Sequence[Label]) -> None:
    """Refuse an environment that admits an action where the potential's space excludes it.

    Args:
        space: the potential's space, which holds all labels.
        state: the position of a state in it.
        mask: bool [actions], whether the environment admits each of its actions there.
        labels: the environment's actions.
    """
    allowed = space.is_admissible[state]
    excluded = [
        label
        for label, is_admitted in zip(labels, mask, strict=True)
        if is_admitted and not allowed[space.find_action(label)]
    ]
    if excluded:
        raise ArgumentError(
            f"In state {space.states[state]!r} the environment admits "
            f"{', '.join(map(str, excluded))}, but the potential's space excludes it there: its "
            "ceilings can be too low. Declare what the environment admits (admissible) when the "
            "logs are counted."
        )


def compare_admissible(space: Space, own: Space) -> None:
    """Refuse an environment whose own space admits what the potential's space excludes."""
    if space.admissible:
        for s, state in enumerate(space.find_all(own)):
            if state != UNKNOWN and own.states[s] not in own.terminal:
                refuse_excluded(space, state, own.is_admissible[s], own.actions)
