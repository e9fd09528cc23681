"""Labels in Arrow columns: from positions in a space to labels and back, a column at a time.

Files and engines hold states and actions by label, arrays in memory hold them by position.

- `label_column`, `logs_table`: positions to columns of labels.
- `positions`, `row_positions`: columns of labels to positions; `arrays_by_state`: to whole arrays.
- `numbered`, `read_off`: the distinct labels that columns hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from causal_shaping.data.arrays import IntArray, LongArray
from causal_shaping.data.space import UNKNOWN, Label, Space, label_parts
from causal_shaping.errors import DataError, UnknownLabelError

if TYPE_CHECKING:
    from causal_shaping.data.logs import Logs


def label_column(name: str, labels: Sequence[Label | int | str], where: IntArray) -> pa.Array:
    """Return the labels at the given positions as a column, null for `UNKNOWN`."""
    if len({type(label) for label in labels}) > 1:
        raise DataError(f"Column {name!r} would hold integers and strings. Use labels of one type.")
    unknown: Any = where == UNKNOWN
    if isinstance(labels[0], str):
        return pa.DictionaryArray.from_arrays(pa.array(where, mask=unknown), pa.array(labels))
    return pa.array(np.array(labels, dtype=np.int64)[where], mask=unknown)


def logs_table(logs: Logs) -> pa.Table:
    """Return logs as an Arrow table, states and actions by label."""
    return pa.table(logs.labelled(label_column))


def positions(
    table: pa.Table, names: Sequence[str], known: Mapping[Any, int], what: str
) -> IntArray:
    """Return the position of each row's label; `UNKNOWN` where a part of the label is null.

    Args:
        table: the rows.
        names: the columns that make a label.
        known: the positions by label, such as `space.state_positions`.
        what: what an error calls a label, such as "state".

    Raises:
        UnknownLabelError: names the first label that is not known.
    """
    code, first = numbered(table, names)
    distinct = _labels(table.take(first), names)
    place = np.array([known.get(label, UNKNOWN) for label in distinct], dtype=np.int32)
    strange = [i for i in np.flatnonzero(place == UNKNOWN) if None not in label_parts(distinct[i])]
    if strange:
        label = distinct[min(strange, key=lambda i: first[i])]
        message = f"{what} {label!r} is not one of the declared ones"
        raise UnknownLabelError(message, tuple(names), label_parts(label))
    return place[code]


def row_positions(
    table: pa.Table, space: Space, states: Sequence[str], next_states: Sequence[str]
) -> dict[str, Any]:
    """Return the columns state, action and next_state of logs or counts as positions in a space."""
    return {
        "state": positions(table, states, space.state_positions, "state"),
        "action": positions(table, ["action"], space.action_positions, "action"),
        "next_state": positions(table, next_states, space.state_positions, "state"),
    }


def numbered(table: pa.Table, names: Sequence[str]) -> tuple[LongArray, LongArray]:
    """Return a number for each row, the same for equal entries, and each number's first row."""
    code, first = np.zeros(table.num_rows, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for name in names:
        encoded = table[name].unify_dictionaries().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):  # an empty table has no chunk
            encoded = pa.array([], encoded.type)
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        size = len(encoded.dictionary)
        index = np.asarray(encoded.indices.fill_null(size)).astype(np.int64)
        # Numbered anew after each part, so that many parts do not overflow.
        code = code * (size + 1) + index
        _, first, code = np.unique(code, return_index=True, return_inverse=True)
    return code, first


def read_off(table: pa.Table, groups: Sequence[Sequence[str]]) -> list[Any]:
    """Return the labels of some groups of columns (state, next state), in their order."""
    labels: set[Any] = set()
    for names in groups:
        distinct = table.select(list(names)).group_by(list(names)).aggregate([]).drop_null()
        labels.update(_labels(distinct, names))
    return sorted(labels)


def _labels(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return the label of each row: the entry of the only column, or a tuple."""
    columns: list[list[Any]] = [table[name].to_pylist() for name in names]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def arrays_by_state(
    table: pa.Table, space: Space, steps: int | None
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `Space.columns_by_state` laid out, by name, in the order of the space.

    Args:
        table: a row per step and state, or per state, in any order.
        space: the states.
        steps: the number of steps; None for arrays without.

    Raises:
        DataError: if the table does not hold each step and state once.
    """
    shape: tuple[int, ...] = (len(space.states),)
    key = {*space.columns}
    place = positions(table, space.columns, space.state_positions, "state").astype(np.int64)
    if steps is not None:
        place = place + shape[0] * table["step"].to_numpy()
        shape, key = (steps, *shape), key | {"step"}
    order = np.argsort(place)
    once = len(place) == math.prod(shape) and np.array_equal(place[order], np.arange(len(place)))
    if not once:
        raise DataError("it does not hold each step and state once")
    arrays = {}
    for name in table.column_names:
        if name not in key:
            bare = name.lstrip("_")  # `Space.free_name` put underscores in front
            own = bare if bare in space.columns else name
            arrays[own] = table[name].to_numpy()[order].reshape(shape)
    return arrays
