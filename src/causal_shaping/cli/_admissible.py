"""`--admissible FILE`: which actions exist in which state, a row for each pair.

Labels are compared as text, because a CSV file does not distinguish 1 from "1".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_shaping.cli._terminal import complain
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:  # importing them would load NumPy for --version
    from causal_shaping.data.space import Label, Space


@dataclass(frozen=True)
class AdmissibleActions:
    """The pairs of a file; calling it with a state and an action tells whether the action exists.

    In a state that the file leaves out every action exists.
    """

    path: Path
    pairs: Mapping[tuple[str, ...], frozenset[str]]

    def __call__(self, state: Label, action: Label) -> bool:
        actions = self.pairs.get(_texts(state))
        return actions is None or str(action) in actions

    def check(self, space: Space) -> None:
        """Refuse a file that names unknown actions or no known state; warn of unknown states."""
        actions = list(map(str, space.actions))
        if unknown := sorted(set().union(*self.pairs.values()) - set(actions)):
            raise ArgumentError(
                f"{self.path} names action {unknown[0]!r}, which is none of {', '.join(actions)}. "
                f"Declare all actions: --actions {','.join([*actions, *unknown])}."
            )
        states = {_texts(state) for state in space.states}
        if not self.pairs.keys() & states:
            raise ArgumentError(
                f"{self.path} names no state that is known; its first one is "
                f"{' '.join(next(iter(self.pairs)))}, a known one "
                f"{' '.join(_texts(space.states[0]))}. Columns with bins hold the bin's number."
            )
        if unseen := sorted(self.pairs.keys() - states):
            complain(
                "warning",
                f"{self.path} names {len(unseen)} states that the logs do not hold, such as "
                f"{' '.join(unseen[0])}. They change nothing; a state that the file leaves out "
                "admits all actions.",
            )


def read_admissible(path: Path, columns: Sequence[str], action: str) -> AdmissibleActions:
    """Read the pairs of a CSV or Parquet file with the columns of state and action."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from causal_shaping.logs.queries import reading
    from causal_shaping.storage import InputFile

    # Arrow opens the file itself: if one of its threads lets go of a Python file while Python
    # ends, the process aborts.
    with reading(str(path)), InputFile.at(path).open(), pa.OSFile(str(path)) as file:
        if path.suffix.lower() == ".parquet":
            table = pq.ParquetFile(file).read()
        else:
            table = csv.read_csv(file)
    names = (*columns, action)
    if missing := [name for name in names if name not in table.column_names]:
        raise ArgumentError(
            f"{path} has no column {missing[0]!r}. It needs a row for each action that exists in a "
            f"state, with the columns {', '.join(names)}; it has {', '.join(table.column_names)}."
        )
    if not table.num_rows:
        raise ArgumentError(f"{path} has no rows: each action that exists in a state needs one.")
    pairs = defaultdict[tuple[str, ...], set[str]](set)
    for *state, name in zip(*(table[column].to_pylist() for column in names), strict=True):
        pairs[tuple(map(_text, state))].add(_text(name))
    return AdmissibleActions(path, {state: frozenset(names) for state, names in pairs.items()})


def _texts(state: Label) -> tuple[str, ...]:
    """Return the parts of a state's label as text."""
    if isinstance(state, tuple):
        return tuple(map(str, state))
    return (str(state),)


def _text(value: Any) -> str:
    """Return a value as the text of a label; 1.0 and true are written 1, as labels are."""
    if isinstance(value, (bool, float)) and float(value).is_integer():
        return str(int(value))
    return str(value)
