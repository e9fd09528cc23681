"""Arrays by step and state in columns, and back: what bounds, potentials and learned tables have in common.

A file has a row per step and state, or per state. States stand in their columns by label, so that the order of rows
and of columns does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.space import Space
from causal_shaping.errors import DataError
from causal_shaping.io.container import Contents, save
from causal_shaping.io.labels import positions, state_columns


def save_by_state(
    path: str | os.PathLike[str],
    kind: str,
    space: Space,
    columns: Mapping[str, npt.NDArray[Any]],
    metadata: Mapping[str, Any],
    checksum: str | None = None,
) -> None:
    """Save columns [steps, states], or [states] without steps; see `container.save`.

    A column whose name is one of the state's has underscores in front.
    """
    shape = next(iter(columns.values())).shape
    steps = shape[0] if len(shape) == 2 else None
    table: dict[str, Any] = {} if steps is None else {"step": np.repeat(np.arange(steps), shape[1])}
    table |= state_columns(space, np.tile(np.arange(shape[-1], dtype=np.int32), steps or 1))
    table |= {space.free_name(name): values.ravel() for name, values in columns.items()}
    save(path, kind, table, {**metadata, "steps": steps}, space=space, checksum=checksum)


def columns_by_state(contents: Contents) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that `save_by_state` wrote, by name, in the order of the space.

    Raises:
        DataError: if the table does not hold each step and state once.
    """
    table, space, steps = contents.table, contents.space, contents.metadata["steps"]
    if steps is not None and not isinstance(steps, int):
        raise DataError(f"it claims to have {steps!r} steps")
    states = len(space.states)
    key = (*space.columns, *(() if steps is None else ("step",)))
    place = positions(table, space.columns, space.find, "state").astype(np.int64)
    if steps is not None:
        place = place + states * table["step"].to_numpy()
    if place.dtype != np.int64 or not np.array_equal(np.sort(place), np.arange(states * (steps or 1))):
        raise DataError("it does not hold each step and state once")
    order = np.argsort(place)
    shape = (states,) if steps is None else (steps, states)
    return {
        name.lstrip("_") if name.lstrip("_") in space.columns else name: table[name].to_numpy()[order].reshape(shape)
        for name in table.column_names
        if name not in key
    }
