"""What an agent did, kept in compact columns that grow, to be one more source beside the logs."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Label, Space
from causal_shaping.errors import CausalShapingError, DataError
from causal_shaping.shaping._shaper import Shaper

CODES = {"state": "i", "action": "i", "next_state": "i", "reward": "d", "terminated": "b", "truncated": "b"}
"""The columns of a row and the types that `array` keeps them in: 22 bytes a step."""


class Recording:
    """The steps of one environment, or of several side by side, with states and actions by label."""

    def __init__(self, shaper: Shaper, environments: int = 1) -> None:
        shaper.need_names()
        assert shaper.actions is not None
        self._shaper, space = shaper, shaper.potential.space
        self._states: dict[Label, int] = {label: i for i, label in enumerate(space.states)}
        actions = (*space.actions, *(label for label in shaper.actions if space.find_action(label) == UNKNOWN))
        self._space: Space = replace(space, actions=actions)
        self._actions = [self._space.action_position(label) for label in shaper.actions]
        columns: list[dict[str, array[Any]]] = [
            {name: array(code) for name, code in CODES.items()} for _ in range(environments)
        ]
        self._columns = columns
        self._first = [array("q") for _ in range(environments)]  # the row at which each episode begins
        self._state = [UNKNOWN] * environments

    def begin(self, observation: Any, i: int = 0, position: int = UNKNOWN) -> None:
        """Begin an episode of environment i; `position` is that of the state in the potential, if it was looked up."""
        self._state[i] = self._met(observation) if position == UNKNOWN else position
        self._first[i].append(len(self._columns[i]["state"]))

    def add(
        self,
        action: Any,
        reward: float,
        observation: Any,
        terminated: bool,
        truncated: bool,
        i: int = 0,
        position: int = UNKNOWN,
    ) -> None:
        """Keep a step of environment i; `position` as in `begin`."""
        after = position
        if after == UNKNOWN:
            after = self._ended(observation) if terminated else self._met(observation)
        number = self._actions[self._shaper.numbers.position(action)]
        row: tuple[Any, ...] = (self._state[i], number, after, float(reward), bool(terminated), bool(truncated))
        for column, value in zip(self._columns[i].values(), row, strict=True):
            column.append(value)
        self._state[i] = after

    def refuse_inadmissible(self, action: Any, i: int = 0) -> None:
        """Refuse an action that the space excludes: it could not be counted."""
        if self._space.admissible:
            self._shaper.refuse_inadmissible(self._state[i], action)

    def _met(self, observation: Any) -> int:
        return self._states.setdefault(self._shaper.label(observation), len(self._states))

    def _ended(self, observation: Any) -> int:
        """Return the state that an episode ended in, `UNKNOWN` if the space does not hold it: nobody acts there."""
        try:
            return self._states.get(self._shaper.label(observation), UNKNOWN)
        except (CausalShapingError, LookupError, TypeError, ValueError):  # a label of one's own may not know the end
            return UNKNOWN

    def logs(self, source: str) -> Logs:
        """Return all steps so far."""
        parts: list[dict[str, npt.NDArray[Any]]] = []
        episodes = 0
        for columns, first in zip(self._columns, self._first, strict=True):
            held = {name: np.array(column) for name, column in columns.items()}
            rows = np.arange(len(held["state"]))
            begin = np.unique(np.array(first)[np.array(first) < len(rows)])  # an episode without a step is none
            episode = np.searchsorted(begin, rows, side="right") - 1
            parts.append(held | {"episode": episodes + episode, "step": rows - begin[episode]})
            episodes += len(begin)
        if episodes == 0:
            raise DataError("The agent has not taken a step yet: there are no logs.")
        table: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in Logs.COLUMNS}
        table |= {name: table[name].astype(bool) for name in ("terminated", "truncated")}
        known = len(self._states) == len(self._space.states)
        space = replace(self._space, states=tuple(self._states), complete=self._space.complete and known)
        return Logs(space, source, **table)
