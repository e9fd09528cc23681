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
    checksum: str | None = None,
) -> None:
    """Save columns [steps, states], or [states] without steps; see `Space.columns_by_state` and `container.save`."""
    shape = next(iter(columns.values())).shape
    header = {**metadata, "steps": shape[0] if len(shape) == 2 else None}
    save(path, kind, space.columns_by_state(columns, label_column), header, space=space, checksum=checksum)


def columns_by_state(contents: Contents) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that `save_by_state` wrote, by name, in the order of the space.

    Raises:
        DataError: if the table does not hold each step and state once.
    """
    table, space, steps = contents.table, contents.space, contents.metadata["steps"]
    if steps is not None and (type(steps) is not int or steps < 0):
        raise DataError(f"it claims to have {steps!r} steps")
    shape = (len(space.states),) if steps is None else (steps, len(space.states))
    if math.prod(shape) != table.num_rows:
        raise DataError("it does not hold each step and state once")
    key = (*space.columns, *("step",) * (len(shape) - 1))
    place = positions(table, space.columns, space.state_positions, "state").astype(np.int64)
    if steps is not None:
        place = place + shape[-1] * table["step"].to_numpy()
    if place.dtype != np.int64 or not np.array_equal(np.sort(place), np.arange(np.prod(shape))):
        raise DataError("it does not hold each step and state once")
    order = np.argsort(place)
    return {
        name.lstrip("_") if name.lstrip("_") in space.columns else name: table[name].to_numpy()[order].reshape(shape)
        for name in table.column_names
        if name not in key
    }
