"""What an agent did, kept in columns that grow, to be one more source beside the logs.

- `StateRecording`: states by label, compact; `ObservationRecording`: states as arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Label, Space
from causal_shaping.errors import CausalShapingError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from causal_shaping.shaping._observations import ObservationShaper
    from causal_shaping.shaping._states import StateShaper

Ended = tuple[bool, bool]
"""Whether a step terminated the episode, and whether it was truncated there."""

CODES = {"state": "i", "action": "i", "next_state": "i", "reward": "d", "terminated": "b", "truncated": "b"}
"""The columns of a row and the types that `array` keeps them in: 22 bytes a step."""


class Recording(ABC):
    """The steps of one environment, or of several side by side."""

    @abstractmethod
    def begin(self, observation: Any, i: int = 0, place: Any = UNKNOWN) -> None:
        """Begin an episode of environment i; `place` is that of the observation, if it was looked up."""

    @abstractmethod
    def add(self, action: Any, reward: float, seen: Any, ended: Ended, i: int = 0, place: Any = UNKNOWN) -> None:
        """Keep a step of environment i; `seen` is the observation after it, `place` as in `begin`."""

    @abstractmethod
    def logs(self, source: str) -> Logs | pa.Table:
        """Return all steps so far."""

    def refuse_inadmissible(self, action: Any, i: int = 0) -> None:  # noqa: B027, most exclude nothing
        """Refuse an action that could not be counted."""


class StateRecording(Recording):
    """Steps with states and actions by label."""

    def __init__(self, shaper: StateShaper, environments: int) -> None:
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

    def begin(self, observation: Any, i: int = 0, place: int = UNKNOWN) -> None:
        """Begin an episode of environment i; `place` is the state's position in the potential, if it was looked up."""
        self._state[i] = self._met(observation) if place == UNKNOWN else place
        self._first[i].append(len(self._columns[i]["state"]))

    def add(self, action: Any, reward: float, seen: Any, ended: Ended, i: int = 0, place: int = UNKNOWN) -> None:
        """Keep a step of environment i; `place` as in `begin`."""
        after = place
        if after == UNKNOWN:
            after = self._ended(seen) if ended[0] else self._met(seen)
        number = self._actions[self._shaper.numbers.position(action)]
        row: tuple[Any, ...] = (self._state[i], number, after, float(reward), *map(bool, ended))
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


class ObservationRecording(Recording):
    """Steps with states as arrays, as the potential takes them, and actions by label."""

    def __init__(self, shaper: ObservationShaper, environments: int) -> None:
        shaper.need_names()
        self._shaper = shaper
        self._states: list[npt.NDArray[Any] | None] = [None] * environments
        self._steps = [0] * environments
        self._episodes = [UNKNOWN] * environments
        self._rows: list[list[tuple[Any, ...]]] = [[] for _ in range(environments)]

    def begin(self, observation: Any, i: int = 0, place: Any = UNKNOWN) -> None:
        """Begin an episode of environment i; `place` is what the potential takes, if it was looked up."""
        self._states[i], self._steps[i] = self._kept(observation, place), 0
        self._episodes[i] += 1

    def _kept(self, observation: Any, place: Any) -> npt.NDArray[Any]:
        looked_up = place if isinstance(place, np.ndarray) else self._shaper.place(observation)
        return np.array(looked_up, dtype=self._shaper.potential.dtype)  # a copy: environments reuse their arrays

    def add(self, action: Any, reward: float, seen: Any, ended: Ended, i: int = 0, place: Any = UNKNOWN) -> None:
        """Keep a step of environment i; `place` as in `begin`."""
        actions = self._shaper.actions
        assert actions is not None
        label, after = actions[self._shaper.numbers.position(action)], self._kept(seen, place)
        key = (self._episodes[i], self._steps[i])
        self._rows[i].append((*key, self._states[i], label, reward, after, *map(bool, ended)))
        self._states[i], self._steps[i] = after, self._steps[i] + 1

    def logs(self, source: str) -> pa.Table:
        """Return all steps so far: the columns of the potential, or one of flat lists, `state`, where it has none."""
        import pyarrow as pa

        rows = [(i, *row) for i, own in enumerate(self._rows) for row in own]
        if not rows:
            raise DataError("The agent has not taken a step yet: there are no logs.")
        environment, number, step, state, action, reward, after, terminated, truncated = zip(*rows, strict=True)
        _, episode = np.unique(np.array([environment, number]), axis=1, return_inverse=True)

        def columns(seen: Any, prefix: str) -> dict[str, Any]:
            flat, names = np.stack(seen).reshape(len(rows), -1), self._shaper.potential.columns
            if names:
                return {prefix + name: flat[:, d] for d, name in enumerate(names)}
            return {f"{prefix}state": pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1])}

        return pa.table(
            {
                "source": [source] * len(rows),
                "episode": episode.ravel(),
                "step": np.array(step, dtype=np.int32),
                **columns(state, ""),
                "action": list(action),
                "reward": np.array(reward, dtype=np.float64),
                **columns(after, "next_"),
                "terminated": list(terminated),
                "truncated": list(truncated),
            }
        )
