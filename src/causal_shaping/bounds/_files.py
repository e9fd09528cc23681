"""Bounds on disk."""

from __future__ import annotations

import dataclasses
import os
from typing import TypeVar

import numpy as np

from causal_shaping.bounds.results import Bounds
from causal_shaping.data.space import Space
from causal_shaping.errors import FileError
from causal_shaping.io.state_table import read_state_table, write_state_table

BOUNDS_VERSION = 2
Kind = TypeVar("Kind", bound=Bounds)


def save_bounds(bounds: Bounds, path: str | os.PathLike[str]) -> None:
    """Write bounds to a Parquet file; see `causal_shaping.io.state_table`.

    Columns: `step` (left out if stationary), the state's by label, `value`, `vacuous`, `terminal`, and `q_value of
    ACTION` per action. The metadata hold the settings, the assumptions in words, and a checksum.
    """
    columns = {"value": bounds.values, "vacuous": bounds.vacuous}
    columns["terminal"] = np.broadcast_to(bounds.terminal, bounds.values.shape)
    columns |= {name: bounds.q_values[..., x] for x, name in enumerate(_q_names(bounds.space))}
    about = {"kind": bounds.KIND, "version": BOUNDS_VERSION, **bounds.about(), "assumptions": bounds.assumptions}
    write_state_table(path, bounds.space, columns, {**about, "checksum": bounds.checksum})


def load_bounds(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Return the bounds that `save_bounds` wrote."""
    about, space, columns = read_state_table(path, kind.KIND, BOUNDS_VERSION)
    if missing := {"value", "vacuous", "terminal", *_q_names(space)} - set(columns):
        raise FileError(f"{path} lacks the columns {', '.join(sorted(missing))}. Was it changed?")
    wanted = {field.name for field in dataclasses.fields(kind)} - set(kind.ARRAYS)
    if not wanted <= set(about):
        raise FileError(f"{path} was written by another version of this package. Compute it again.")
    settings = {name: about[name] for name in wanted}
    states = len(space.states)
    arrays = {
        "values": columns["value"],
        "vacuous": columns["vacuous"],
        "terminal": columns["terminal"].reshape(-1, states)[0],
        "q_values": np.stack([columns[name] for name in _q_names(space)], axis=-1),
    }
    plain = {
        "space": space,
        "sources": tuple(about["sources"]),
        "confounding": {name: float(gamma) for name, gamma in about["confounding"].items()},
        "caveats": tuple(about["caveats"]),
    }
    result = kind(**settings | arrays | plain)
    if result.checksum != about["checksum"]:
        raise FileError(f"{path} was changed after it was written: its checksum does not fit what it holds.")
    return result


def _q_names(space: Space) -> list[str]:
    """Return a column for each action; those that look alike, as 1 and "1" do, have their position behind them."""
    names = [f"q_value of {action}" for action in space.actions]
    return [f"{name} ({x})" if names.count(name) > 1 else name for x, name in enumerate(names)]
