"""Tables with a row per step and state on disk: Parquet files that any tool can open.

What bounds and potentials have in common. States stand in their columns by label, so that the order of rows and of
columns does not matter; the metadata key `causal_shaping` holds JSON with the space and everything else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.space import Space
from causal_shaping.errors import FileError
from causal_shaping.io.files import PARQUET, replacing
from causal_shaping.io.labels import positions
from causal_shaping.io.parquet import METADATA_KEY, read_metadata, state_columns


def write_state_table(
    path: str | os.PathLike[str],
    space: Space,
    columns: Mapping[str, npt.NDArray[Any]],
    about: Mapping[str, Any],
) -> None:
    """Write columns [steps, states], or [states] without steps, to a Parquet file.

    A column whose name is one of the state's has underscores in front.

    Args:
        path: the file to make or replace.
        space: the states and actions.
        columns: by name.
        about: plain values for the metadata, `kind`, `version` and `checksum` among them.
    """
    shape = next(iter(columns.values())).shape
    states = np.tile(np.arange(len(space.states), dtype=np.int32), shape[0] if len(shape) == 2 else 1)
    table = {"step": np.repeat(np.arange(shape[0]), shape[1])} if len(shape) == 2 else {}
    table |= state_columns(space, states)
    table |= {_free(name, space): values.ravel() for name, values in columns.items()}
    metadata = json.dumps(
        {**about, "space": json.loads(space.to_json()), "steps": shape[0] if len(shape) == 2 else None}
    )
    with replacing(path, PARQUET) as temporary:
        pq.write_table(pa.table(table).replace_schema_metadata({METADATA_KEY: metadata}), temporary)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return what a file of this package holds, None for any other file."""
    try:
        text = (pq.read_schema(path).metadata or {}).get(METADATA_KEY)
    except (OSError, pa.ArrowException):
        return None
    try:
        return None if text is None else str(json.loads(text)["kind"])
    except (ValueError, KeyError, TypeError):
        return None


def read_state_table(
    path: str | os.PathLike[str], kind: str, newest: int
) -> tuple[dict[str, Any], Space, dict[str, npt.NDArray[Any]]]:
    """Return what `write_state_table` wrote: the metadata, the space, and the columns by name.

    Raises:
        FileError: if the file is not of that kind, newer than this package, or does not hold each step and state once.
    """
    if not Path(path).is_file():
        raise FileError(f"{path} does not exist, or is not a file.")
    about = read_metadata(path, kind=kind, newest=newest)
    if about is None:
        raise FileError(f"{path} holds no {kind} of this package.")
    if not {"steps", "checksum"} <= set(about):
        raise FileError(f"{path} was written by another version of this package. Compute it again.")
    table, space = pq.read_table(path), Space.from_json(about["space"])
    if about["steps"] is not None and not isinstance(about["steps"], int):
        raise FileError(f"{path} says that it has {about['steps']!r} steps. Was it changed?")
    states, steps = len(space.states), about["steps"]
    key = (*space.columns, *(() if steps is None else ("step",)))
    if missing := set(key) - set(table.column_names):
        raise FileError(f"{path} lacks the columns {', '.join(sorted(missing))}. Was it changed?")
    place = positions(table, space.columns, space.states, "state").astype(np.int64)
    if steps is not None:
        place = place + states * table["step"].to_numpy()
    if place.dtype != np.int64 or not np.array_equal(np.sort(place), np.arange(states * (steps or 1))):
        raise FileError(f"{path} does not hold each step and state once. Was it cut?")
    order = np.argsort(place)
    shape = (states,) if steps is None else (steps, states)
    columns = {
        name.lstrip("_") if name.lstrip("_") in space.columns else name: table[name].to_numpy()[order].reshape(shape)
        for name in table.column_names
        if name not in key
    }
    return about, space, columns


def _free(name: str, space: Space) -> str:
    while name in space.columns:
        name = "_" + name
    return name
