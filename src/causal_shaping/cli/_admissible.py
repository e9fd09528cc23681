"""`--admissible FILE`: which actions exist in which state, a row for each pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_shaping.cli._terminal import complain
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:  # or every command, --version among them, would load all of the data's modules
    from causal_shaping.data.space import Label, Space


@dataclass(frozen=True)
class AdmissibleActions:
    """The pairs of a file: `(state, action)` asks whether an action exists; in a state that it leaves out all do.

    Labels are compared as text, since a CSV file does not distinguish 1 and "1".
    """

    path: Path
    pairs: Mapping[tuple[str, ...], frozenset[str]]

    def __call__(self, state: Label, action: Label) -> bool:
        held = self.pairs.get(_texts(state))
        return held is None or str(action) in held

    def check(self, space: Space) -> None:
        """Refuse a file that does not fit a space: it names other actions, or none of its states."""
        names = {str(action) for action in space.actions}
        unknown = sorted(set().union(*self.pairs.values()) - names)
        if unknown:
            raise ArgumentError(
                f"{self.path} names action {unknown[0]!r}, which is none of {', '.join(map(str, space.actions))}. "
                f"Declare all actions: --actions {','.join([*map(str, space.actions), *unknown])}."
            )
        if not self.pairs.keys() & {_texts(state) for state in space.states}:
            example = " ".join(next(iter(self.pairs)))
            raise ArgumentError(
                f"{self.path} names no state that is known; its first one is {example}, a known one "
                f"{' '.join(_texts(space.states[0]))}. Columns with bins hold the number of the bin."
            )
        if strange := sorted(self.pairs.keys() - {_texts(state) for state in space.states}):
            complain(
                "warning",
                f"{self.path} names {len(strange)} states that the logs do not hold, such as {' '.join(strange[0])}. "
                "They change nothing; a state that the file leaves out admits all actions.",
            )


def read_admissible(path: Path, columns: Sequence[str], action: str) -> AdmissibleActions:
    """Read the pairs of a CSV or Parquet file with the columns of a state and that of the action."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from causal_shaping.logs.queries import reading
    from causal_shaping.storage import InputFile

    # Arrow's own file: a thread of Arrow's that lets go of one of Python's while Python ends would abort.
    with reading(str(path)), InputFile.at(path).open(), pa.OSFile(str(path)) as file:
        table = pq.ParquetFile(file).read() if path.suffix.lower() == ".parquet" else csv.read_csv(file)
    missing = [name for name in (*columns, action) if name not in table.column_names]
    if missing:
        raise ArgumentError(
            f"{path} has no column {missing[0]!r}. It needs a row for each action that exists in a state, with the "
            f"columns {', '.join((*columns, action))}; it has {', '.join(table.column_names)}."
        )
    pairs = defaultdict[tuple[str, ...], set[str]](set)
    for *state, name in zip(*(table[name].to_pylist() for name in (*columns, action)), strict=True):
        pairs[tuple(map(_text, state))].add(_text(name))
    if not pairs:
        raise ArgumentError(f"{path} has no rows: it needs one for each action that exists in a state.")
    return AdmissibleActions(path, {state: frozenset(names) for state, names in pairs.items()})


def _texts(state: Label) -> tuple[str, ...]:
    return tuple(map(str, state)) if isinstance(state, tuple) else (str(state),)


def _text(value: Any) -> str:
    """Return a value as the text of a label; a whole number may come as a real one."""
    return str(int(value)) if isinstance(value, (bool, float)) and float(value).is_integer() else str(value)
