"""Bounds on disk: a Parquet file that any tool can open."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.bounds.results import Bounds
from causal_shaping.data import Space
from causal_shaping.errors import FileError
from causal_shaping.files import PARQUET, replacing
from causal_shaping.logs.labels import positions
from causal_shaping.logs.parquet import METADATA_KEY, read_about, state_columns

BOUNDS_VERSION = 1
Kind = TypeVar("Kind", bound=Bounds)


def save_bounds(bounds: Bounds, path: str | os.PathLike[str]) -> None:
    """Write bounds to a Parquet file.

    A row per step and state: `step` (left out if stationary), the state's columns by label, `value`, `vacuous`,
    `terminal`, and a column `q_value of ACTION` per action. A name that the state's columns take has underscores in
    front. The metadata key `causal_shaping` holds JSON: the space, the settings, the assumptions in words, a checksum.
    """
    space = bounds.space
    steps = 1 if bounds.stationary else bounds.horizon
    states = len(space.states)
    columns: dict[str, Any] = {} if bounds.stationary else {"step": np.repeat(np.arange(steps), states)}
    columns |= state_columns(space, np.tile(np.arange(states, dtype=np.int32), steps))
    columns[_name("value", space)] = bounds.values.ravel()
    columns[_name("vacuous", space)] = bounds.vacuous.ravel()
    columns[_name("terminal", space)] = np.tile(bounds.terminal, steps)
    q_values = bounds.q_values.reshape(-1, len(space.actions))
    columns |= {name: q_values[:, x] for x, name in enumerate(_q_names(space))}
    about = {
        "kind": bounds.KIND,
        "version": BOUNDS_VERSION,
        **bounds.about(),
        "assumptions": bounds.assumptions,
        "checksum": bounds.checksum,
    }
    with replacing(path, PARQUET) as temporary:
        pq.write_table(pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(about)}), temporary)


def load_bounds(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Return the bounds that `save_bounds` wrote; the order of rows and of columns does not matter."""
    if not Path(path).is_file():
        raise FileError(f"{path} does not exist, or is not a file.")
    about = read_about(path, kind=kind.KIND, newest=BOUNDS_VERSION)
    if about is None:
        raise FileError(f"{path} holds no {kind.KIND} of this package.")
    table, space = pq.read_table(path), Space.from_json(about["space"])
    wanted = {*space.columns, *(_name(name, space) for name in ("value", "vacuous", "terminal")), *_q_names(space)}
    if missing := wanted - set(table.column_names):
        raise FileError(f"{path} lacks the columns {', '.join(sorted(missing))}. Was it changed?")
    state = positions(table, space.columns, space.states, "state")
    states, steps = len(space.states), 1 if about["stationary"] else about["horizon"]
    step = np.zeros(len(state), dtype=np.int64) if about["stationary"] else table["step"].to_numpy()
    place = step * states + state
    if not np.array_equal(np.sort(place), np.arange(steps * states)):
        raise FileError(f"{path} does not hold each step and state once. Was it cut?")
    order = np.argsort(place)

    def rows(name: str) -> Any:
        values = table[name].to_numpy()[order]
        return values if about["stationary"] else values.reshape(steps, states)

    settings = {field.name: about[field.name] for field in dataclasses.fields(kind) if field.name in about}
    result = kind(
        **settings
        | {
            "space": space,
            "values": rows(_name("value", space)),
            "vacuous": rows(_name("vacuous", space)),
            "terminal": table[_name("terminal", space)].to_numpy()[order][:states],
            "q_values": np.stack([rows(name) for name in _q_names(space)], axis=-1),
            "sources": tuple(about["sources"]),
            "confounding": {name: float(gamma) for name, gamma in about["confounding"].items()},
            "caveats": tuple(about["caveats"]),
        }
    )
    if result.checksum != about["checksum"]:
        raise FileError(f"{path} was changed after it was written: its checksum does not fit what it holds.")
    return result


def _q_names(space: Space) -> list[str]:
    """Return a column for each action; those that look alike, as 1 and "1" do, have their position behind them."""
    names = [str(action) for action in space.actions]
    return [
        _name(f"q_value of {name}" + (f" ({x})" if names.count(name) > 1 else ""), space)
        for x, name in enumerate(names)
    ]


def _name(name: str, space: Space) -> str:
    while name in space.columns:
        name = "_" + name
    return name
