"""Arrays by step and state in columns, and back: what bounds, potentials and learned tables have in common.

A file has a row per step and state, or per state. States stand in their columns by label, so that the order of rows
and of columns does not matter.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.space import Space
from causal_shaping.errors import DataError
from causal_shaping.io.container import Contents, save
from causal_shaping.io.labels import label_column, positions


def save_by_state(
    path: str | os.PathLike[str],
    kind: str,
    space: Space,
    columns: Mapping[str, npt.NDArray[Any]],
    metadata: Mapping[str, Any],
) -> None:
    """Save columns [steps, states], or [states] without steps; see `Space.columns_by_state`."""
    shape = next(iter(columns.values())).shape
    header = {**metadata, "steps": shape[0] if len(shape) == 2 else None}
    save(path, kind, space.columns_by_state(columns, label_column), header, space=space)


def columns_by_state(contents: Contents) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that `save_by_state` wrote, by name, in the order of the space.

    Raises:
        DataError: if the table does not hold each step and state once.
    """
    table, space, steps = contents.table, contents.space, contents.metadata["steps"]
    shape: tuple[int, ...] = (len(space.states),)
    key = set(space.columns)
    place = positions(table, space.columns, space.state_positions, "state").astype(np.int64)
    if steps is not None:
        place = place + shape[0] * table["step"].to_numpy()
        shape, key = (steps, *shape), key | {"step"}
    order = np.argsort(place)
    whole = np.arange(len(place))
    if len(place) != math.prod(shape) or not np.array_equal(place[order], whole):
        raise DataError("it does not hold each step and state once")
    return {
        name.lstrip("_") if name.lstrip("_") in space.columns else name: table[name].to_numpy()[order].reshape(shape)
        for name in table.column_names
        if name not in key
    }
