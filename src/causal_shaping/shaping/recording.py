"""What an agent did, kept in columns that grow, to become one more source beside the logs.

`StateRecording` keeps states by label, about 30 bytes a step; `ObservationRecording` keeps arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.errors import CausalShapingError, DataError
from causal_shaping.shaping.actions import EnvironmentActions
from causal_shaping.shaping.observations import StateLookup

if TYPE_CHECKING:
    import pyarrow as pa

Step: TypeAlias = tuple[Any, float, Any, bool, bool]
"""An action, what it paid (unshaped), the observation after it, terminated, truncated."""

CODES = {"episode": "i", "step": "i", "state": "i", "action": "i", "reward": "d", "next_state": "i"}
CODES |= {"terminated": "b", "truncated": "b"}
"""The columns of a step, and the types that `array` keeps them in."""


class Recording(ABC):
    """The steps of one environment, or of several side by side."""

    def __init__(self, lookup: Any, actions: EnvironmentActions, environments: int) -> None:
        actions.need_names()
        self._lookup, self._actions = lookup, actions
        self._columns: dict[str, Any] = {name: array(code) for name, code in CODES.items()}
        self._episodes = 0
        # Of each environment: the number of its episode, steps so far, the present state.
        self._now: list[tuple[int, int, Any]] = [(UNKNOWN, 0, None)] * environments

    def begin(self, i: int, observation: Any, place: Any) -> None:
        """Begin an episode of environment i at an observation, with the place looked up for it."""
        self._now[i] = self._episodes, 0, self._state(observation, place)
        self._episodes += 1

    def add(self, i: int, step: Step, place: Any) -> None:
        """Keep a step of environment i; `place` is `UNKNOWN` if what followed was not looked up."""
        action, reward, observation, terminated, truncated = step
        episode, h, state = self._now[i]
        after = self._state(observation, place, ended=terminated)
        row = (episode, h, state, self._action(action), reward, after, terminated, truncated)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)
        self._now[i] = episode, h + 1, after

    @abstractmethod
    def _state(self, observation: Any, place: Any, ended: bool = False) -> Any:
        """Return what is kept of an observation; `ended` says that the episode terminated there."""

    @abstractmethod
    def _action(self, action: Any) -> Any:
        """Return what is kept of an action."""

    @abstractmethod
    def logs(self, source: str) -> Logs | pa.Table:
        """Return all steps so far as the logs of a source."""

    def _table(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns, episode by episode."""
        table = {name: np.array(column) for name, column in self._columns.items()}
        if not len(table["episode"]):
            raise DataError("The agent has not taken a step yet: there are no logs.")
        order = np.argsort(table["episode"], kind="stable")
        table = {name: column[order] for name, column in table.items()}
        # An episode without a step is none: it gets no number.
        _, table["episode"] = np.unique(table["episode"], return_inverse=True)
        return table | {name: table[name].astype(bool) for name in ("terminated", "truncated")}


class StateRecording(Recording):
    """Steps with states and actions by label; states that the potential lacks are added."""

    def __init__(self, lookup: StateLookup, actions: EnvironmentActions, environments: int) -> None:
        super().__init__(lookup, actions, environments)
        space = lookup.potential.space
        self._states: dict[Label, int] = {label: i for i, label in enumerate(space.states)}
        known = dict.fromkeys([*space.actions, *(actions.labels or ())])
        self._space = replace(space, actions=tuple(known))

    def _state(self, observation: Any, place: Any, ended: bool = False) -> int:
        if place != UNKNOWN:
            return int(place)
        if not ended:
            return self._states.setdefault(self._lookup.label(observation), len(self._states))
        # Nobody acts where an episode ended: that state need not be known, nor have a label.
        try:
            return self._states.get(self._lookup.label(observation), UNKNOWN)
        except (CausalShapingError, LookupError, TypeError, ValueError):
            return UNKNOWN

    def _action(self, action: Any) -> int:
        return self._space.action_position(self._actions.label(action))

    def logs(self, source: str) -> Logs:
        """Return all steps so far."""
        complete = self._space.complete and len(self._states) == len(self._space.states)
        space = replace(self._space, states=tuple(self._states), complete=complete)
        table: dict[str, Any] = self._table()
        return Logs(space, source, **table)


class ObservationRecording(Recording):
    """Steps with states as arrays, as the potential takes them, and actions by label."""

    def __init__(self, lookup: Any, actions: EnvironmentActions, environments: int) -> None:
        super().__init__(lookup, actions, environments)
        self._columns |= {"state": [], "action": [], "next_state": []}

    def _state(self, observation: Any, place: Any, ended: bool = False) -> npt.NDArray[Any]:
        if isinstance(place, int):  # `UNKNOWN`: it was not looked up
            place = self._lookup.place(observation)
        # A copy: environments reuse their arrays.
        return np.array(place, dtype=self._lookup.potential.dtype)

    def _action(self, action: Any) -> Label:
        return self._actions.label(action)

    def logs(self, source: str) -> pa.Table:
        """Return all steps so far: a column for each coordinate, or one of lists, `state`."""
        import pyarrow as pa

        table, names = self._table(), self._lookup.potential.columns
        columns: dict[str, Any] = {"source": [source] * len(table["reward"])}
        for name, column in table.items():
            prefix = name.removesuffix("state")  # "" or "next_", for the columns of states
            if prefix == name:
                columns[name] = column
                continue
            flat = column.reshape(len(column), -1)
            for d, coordinate in enumerate(names):
                columns[prefix + coordinate] = flat[:, d]
            if not names:
                columns[name] = pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1])
        return pa.table(columns | {"action": columns["action"].tolist()})
