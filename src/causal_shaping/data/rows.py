"""What makes the rows of a log sound: each rule once, for arrays and for an engine's columns alike.

- `row_rules`: the rules of a row alone, over `Rows`; `label_rules`: those of its state.
- `order_rules`: the rules of a row after another one; `jump_rules`: those of their states.
- `Table`: columns of one length that refuse their first bad row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, frozen
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import DataError

JUMP = "the state is not the next state of the row before"


@dataclass(frozen=True)
class Rule:
    """A way in which a row can be bad.

    Attributes:
        column: the column that is to blame.
        broken: whether a row breaks the rule: a boolean array, or a column of an engine.
        text: what is wrong, in words.
        hint: which argument of `open_logs` could help.
    """

    column: str
    broken: Any
    text: str
    hint: str = ""


class Rows:
    """The columns of a log: arrays in memory without missing values, or those of an engine.

    This class has those in memory, `causal_shaping.logs` those of an engine. Beside the columns of
    a log, `ended` says whether a row is terminated or truncated.
    """

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self.columns: Any = columns
        self.continues: Any = np.append(False, columns["episode"][1:] == columns["episode"][:-1])
        """Whether the episode has a row before this one."""

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    def before(self, column: str) -> Any:
        """Return a column's value in the episode's row before; anything where there is none."""
        return np.roll(self[column], 1)

    def missing(self, column: str) -> Any:
        """Return whether a row has no value there."""
        return np.zeros(len(self[column]), dtype=bool)

    def finite(self, column: str) -> Any:
        """Return whether a row has a finite number there."""
        return np.isfinite(self[column])

    def differ(self, one: Any, other: Any) -> Any:
        """Return whether two columns differ, or just one of them has no value."""
        return one != other


def row_rules(rows: Rows, key: Sequence[str], state: Sequence[Rule]) -> list[Rule]:
    """Return the rules of a row alone, in the order in which they are to be reported.

    Args:
        rows: the rows.
        key: the columns of an episode.
        state: the rules of a state.
    """
    flag = "the flag must be true or false (or 1 or 0)"
    return [
        *(Rule(name, rows.missing(name), f"the {name} is missing") for name in (*key, "step")),
        Rule("step", rows["step"] < 0, "a step cannot be before the first"),
        *state,
        Rule("action", rows.missing("action"), "the action is missing"),
        Rule("reward", ~rows.finite("reward"), "the reward must be finite"),
        *(Rule(name, rows.missing(name), flag) for name in ("terminated", "truncated")),
    ]


def order_rules(rows: Rows, jumps: Sequence[Rule]) -> list[Rule]:
    """Return the rules of a row and the one before it, to be reported after its own.

    Args:
        rows: the rows.
        jumps: the rules of the states of two rows.
    """
    step, continues = rows["step"], rows.continues
    gap = step - rows.before("step")
    late = "set first_step to 1 if steps count from 1"
    begin = "the episode does not begin with its first step"
    missing = "steps are missing before this one, or the rows are not in order"
    ended = "the episode continues after it was terminated or truncated"
    return [
        Rule("step", ~continues & (step != 0), begin, late),
        Rule("step", continues & (gap == 0), "the step stands twice in its episode"),
        Rule("step", continues & (gap != 1), missing),
        Rule("step", continues & rows.before("ended"), ended),
        *jumps,
    ]


def label_rules(rows: Rows, states: Sequence[str]) -> list[Rule]:
    """Return the rules of states that are labels."""
    hint = "set missing to a label, such as 'unknown', to make missing values a state of their own"
    return [Rule(name, rows.missing(name), "the state has no value", hint) for name in states]


def jump_rules(
    rows: Rows, states: Sequence[str], next_states: Sequence[str], hint: str = ""
) -> list[Rule]:
    """Return the rules by which the next state of a row is the state of the following one."""
    return [
        Rule(state, rows.continues & rows.differ(rows.before(follower), rows[state]), JUMP, hint)
        for state, follower in zip(states, next_states, strict=True)
    ]


class Table:
    """Columns of one length, and the words to refuse the first bad row with."""

    COLUMNS: ClassVar[Mapping[str, Any]]
    """The columns and their types."""

    def _freeze(self, what: str) -> None:
        """Make the columns read-only arrays of their types and of one length."""
        columns = {
            name: frozen(getattr(self, name), dtype, f"{what}, column {name}")
            for name, dtype in self.COLUMNS.items()
            if getattr(self, name) is not None
        }
        shapes = {name: column.shape for name, column in columns.items()}
        if set(map(len, shapes.values())) != {1} or len(set(shapes.values())) > 1:
            raise DataError(f"{what}: columns must be of one length, but have {shapes}.")
        vars(self).update(columns)

    def _where(self, row: int) -> str:
        raise NotImplementedError

    def _refuse(self, bad: BoolArray, why: str, values: npt.NDArray[Any]) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{self._where(row)}: {why}; found {values[row]}.")

    def _check_positions(self, name: str, low: int, high: int) -> None:
        values = getattr(self, name)
        bad = (values < low) | (values >= high)
        self._refuse(bad, f"{name} must be in {low} .. {high - 1}", values)

    def _check_labels(self) -> None:
        columns: Any = self
        states = len(columns.space.states)
        self._check_positions("state", 0, states)
        self._check_positions("action", 0, len(columns.space.actions))
        self._check_positions("next_state", UNKNOWN, states)
        terminal = np.append(columns.space.is_terminal, False)  # the last one is for UNKNOWN
        why = "the space declares the state terminal: no row starts in it"
        self._refuse(terminal[columns.state], why, columns.state)
        why = "the space declares the next state terminal, but the row is not terminated"
        goes_on = terminal[columns.next_state] & ~columns.terminated
        self._refuse(goes_on, why, columns.next_state)
