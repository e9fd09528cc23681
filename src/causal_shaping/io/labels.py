"""Labels in Arrow columns, and their positions in a space: a column at a time.

- `label_column`, `state_columns`: positions to columns of labels.
- `positions`, `row_positions`: columns of labels to positions; `read_off`: the labels that columns hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causal_shaping.data.arrays import IntArray, LongArray
from causal_shaping.data.space import UNKNOWN, Label, Space
from causal_shaping.errors import DataError, UnknownLabelError


def state_columns(space: Space, state: IntArray) -> dict[str, pa.Array]:
    """Return the columns of a state, by label."""
    return space.state_columns(state, label_column)


def label_column(name: str, labels: Sequence[Label | int | str], where: IntArray) -> pa.Array:
    """Return the labels at the given positions as a column, null for `UNKNOWN`."""
    if len({type(label) for label in labels}) > 1:
        raise DataError(f"Column {name!r} would hold integers and strings. Use labels of one type.")
    unknown: Any = where == UNKNOWN
    if isinstance(labels[0], str):
        return pa.DictionaryArray.from_arrays(pa.array(where, mask=unknown), pa.array(labels))
    return pa.array(np.array(labels, dtype=np.int64)[where], mask=unknown)


def positions(table: pa.Table, names: Sequence[str], find: Callable[[Any], int], what: str) -> IntArray:
    """Return the position of the label that columns make, row by row; `UNKNOWN` where one of them is null.

    `find` gives the position of a label, such as `space.find`. The first that is `UNKNOWN` raises `UnknownLabelError`,
    which calls it a `what`.
    """
    code, first = numbered(table, names)
    distinct = list(zip(*(table[name].take(first).to_pylist() for name in names), strict=True))
    found = np.array([UNKNOWN if None in held else find(joined(held)) for held in distinct], dtype=np.int32)
    strange = [i for i in np.flatnonzero(found == UNKNOWN) if None not in distinct[i]]
    if strange:
        held = distinct[min(strange, key=lambda i: first[i])]
        raise UnknownLabelError(f"{what} {joined(held)!r} is not one of the declared ones", tuple(names), held)
    return found[code]


def numbered(table: pa.Table, names: Sequence[str]) -> tuple[LongArray, LongArray]:
    """Return a number for each row, the same for the same entries of some columns, and the first row of each number."""
    code, first = np.zeros(table.num_rows, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for name in names:
        index, size = _indices(table[name])
        # Numbered anew after each part, so that many parts do not overflow.
        _, first, code = np.unique(code * size + index, return_index=True, return_inverse=True)
    return code, first


def row_positions(table: pa.Table, space: Space, states: Sequence[str], next_states: Sequence[str]) -> dict[str, Any]:
    """Return the columns state, action and next_state of logs or counts as positions in a space."""
    return {
        "state": positions(table, states, space.find, "state"),
        "action": positions(table, ["action"], space.find_action, "action"),
        "next_state": positions(table, next_states, space.find, "state"),
    }


def joined(parts: tuple[Any, ...]) -> Any:
    """Return the label of parts: the only one, or a tuple."""
    return parts[0] if len(parts) == 1 else parts


def _indices(column: pa.ChunkedArray) -> tuple[LongArray, int]:
    """Return a number for each entry, the same for the same value, and a number above all of them."""
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # an empty table has no chunk
        encoded = pa.array([], column.type)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    size = len(encoded.dictionary)
    return np.asarray(encoded.indices.fill_null(size)).astype(np.int64), size + 1


def read_off(table: pa.Table, groups: Sequence[Sequence[str]]) -> list[Any]:
    """Return the labels that groups of columns hold (those of the state, those of the next state), in their order."""
    found: set[Any] = set()
    for names in groups:
        distinct = table.select(list(names)).group_by(list(names)).aggregate([])
        rows = zip(*(distinct[name].to_pylist() for name in names), strict=True)
        found |= {row for row in rows if None not in row}
    return [joined(label) for label in sorted(found)]
