"""Labels in Arrow columns, and their positions in a space: whole columns at a time.

- `label_columns`, `state_columns`, `label_column`: positions to columns of labels.
- `positions`: columns of labels to positions; `read_off`: the labels that columns hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causal_shaping.data.arrays import IntArray, LongArray
from causal_shaping.data.logs import UNKNOWN
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import DataError, UnknownLabelError


def label_columns(space: Space, state: IntArray, action: IntArray, next_state: IntArray) -> dict[str, pa.Array]:
    """Return the columns of the state, the action and the next state, by label."""
    return {
        **state_columns(space, state),
        "action": label_column("action", space.actions, action),
        **dict(zip(space.next_columns, state_columns(space, next_state).values(), strict=True)),
    }


def state_columns(space: Space, state: IntArray) -> dict[str, pa.Array]:
    """Return the columns of a state, by label."""
    parts = zip(*(label if isinstance(label, tuple) else (label,) for label in space.states), strict=True)
    return {name: label_column(name, part, state) for name, part in zip(space.columns, parts, strict=True)}


def label_column(name: str, labels: Sequence[Label | int | str], where: IntArray) -> pa.Array:
    """Return the labels at the given positions as a column, null for `UNKNOWN`."""
    if len({type(label) for label in labels}) > 1:
        raise DataError(f"Column {name!r} would hold integers and strings. Use labels of one type.")
    unknown: Any = where == UNKNOWN
    if isinstance(labels[0], str):
        index = pa.array(where, mask=unknown)
        return pa.DictionaryArray.from_arrays(index, pa.array(labels))
    return pa.array(np.array(labels, dtype=np.int64)[where], mask=unknown)


def positions(table: pa.Table, names: Sequence[str], labels: Sequence[Label], what: str) -> IntArray:
    """Return where the label that columns `names` make stands in `labels`, row by row; `UNKNOWN` for null.

    Raises:
        UnknownLabelError: for the first label that is not there.
    """
    parts = list(zip(*(label if isinstance(label, tuple) else (label,) for label in labels), strict=True))
    codes, known = np.zeros(table.num_rows, dtype=np.int64), np.zeros(len(labels), dtype=np.int64)
    missing = np.zeros(table.num_rows, dtype=bool)
    strange = np.zeros(table.num_rows, dtype=bool)
    for name, part in zip(names, parts, strict=True):
        values = {value: code for code, value in enumerate(dict.fromkeys(part))}
        column, null = _codes(table[name], values)
        missing |= null
        strange |= column < 0
        pairs = np.concatenate([known * len(values) + [values[value] for value in part], codes * len(values) + column])
        # Numbered anew after each part, so that many parts do not overflow.
        _, dense = np.unique(pairs, return_inverse=True)
        known, codes = dense[: len(labels)], dense[len(labels) :]
    order = np.argsort(known)
    result = order[np.searchsorted(known[order], codes).clip(max=len(labels) - 1)]
    strange = ~missing & (strange | (known[result] != codes))
    if strange.any():
        row = int(np.argmax(strange))
        held = tuple(table[name][row].as_py() for name in names)
        label = held[0] if len(held) == 1 else held
        raise UnknownLabelError(f"{what} {label!r} is not one of the declared ones", tuple(names), held)
    return np.where(missing, UNKNOWN, result).astype(np.int32)


def _codes(column: pa.ChunkedArray, values: Mapping[Any, int]) -> tuple[LongArray, Any]:
    """Return the code of each entry, -1 if it has none, and whether it is null."""
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # an empty table has no chunk
        encoded = pa.array([], column.type)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    by_index = np.array([values.get(value, -1) for value in encoded.dictionary.to_pylist()] + [-1], dtype=np.int64)
    null = np.asarray(encoded.is_null())
    index = np.asarray(encoded.indices.fill_null(len(by_index) - 1)).astype(np.int64)
    return by_index[index], null


def read_off(table: pa.Table, groups: Sequence[Sequence[str]]) -> list[Any]:
    """Return the labels that a table holds, in their natural order.

    Args:
        table: any table.
        groups: columns that make a label, several times over: those of the state, those of the next state.
    """
    found: set[Any] = set()
    for names in groups:
        distinct = table.select(list(names)).group_by(list(names)).aggregate([])
        rows = zip(*(distinct[name].to_pylist() for name in names), strict=True)
        found |= {row for row in rows if None not in row}
    return [label[0] if len(label) == 1 else label for label in sorted(found)]
