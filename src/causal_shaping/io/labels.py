"""Labels in Arrow columns, and their positions in a space: a column at a time.

- `label_column`, `state_columns`: positions to columns of labels.
- `positions`, `row_positions`: columns of labels to positions; `read_off`: the labels that columns hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def positions(table: pa.Table, names: Sequence[str], known: Mapping[Any, int], what: str) -> IntArray:
    """Return the position of the label that columns make, row by row; `UNKNOWN` where one of them is null.

    `known` are the positions by label, such as `space.state_positions`. The first label that is not among them raises
    `UnknownLabelError`, which calls it a `what`.
    """
    code, first = numbered(table, names)
    distinct = _labels(table.take(first), names)
    found = np.array([known.get(label, UNKNOWN) for label in distinct], dtype=np.int32)
    strange = [i for i in np.flatnonzero(found == UNKNOWN) if None not in _parts(distinct[i])]
    if strange:
        label = distinct[min(strange, key=lambda i: first[i])]
        raise UnknownLabelError(f"{what} {label!r} is not one of the declared ones", tuple(names), _parts(label))
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
        "state": positions(table, states, space.state_positions, "state"),
        "action": positions(table, ["action"], space.action_positions, "action"),
        "next_state": positions(table, next_states, space.state_positions, "state"),
    }


def _labels(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return the label that columns make, row by row: the entry of the only one, or a tuple."""
    columns = [table[name].to_pylist() for name in names]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _parts(label: Any) -> tuple[Any, ...]:
    """Return what the columns of a label hold."""
    return label if isinstance(label, tuple) else (label,)


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
        distinct = table.select(list(names)).group_by(list(names)).aggregate([]).drop_null()
        found.update(_labels(distinct, names))
    return sorted(found)
