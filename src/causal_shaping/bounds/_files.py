"""Bounds on disk."""

from __future__ import annotations

import dataclasses
import os
from typing import TypeVar

import numpy as np

from causal_shaping.bounds.results import Bounds
from causal_shaping.data.space import Space
from causal_shaping.io.by_state import columns_by_state, save_by_state
from causal_shaping.io.container import Contents, load

Kind = TypeVar("Kind", bound=Bounds)


def save_bounds(bounds: Bounds, path: str | os.PathLike[str]) -> None:
    """Write bounds to a Parquet file; see `causal_shaping.io.by_state`.

    Columns: `step` (left out if stationary), the state's by label, `value`, `vacuous`, `terminal`, and `q_value of
    ACTION` per action. The metadata hold the settings and the assumptions in words.
    """
    columns = {"value": bounds.values, "vacuous": bounds.vacuous}
    columns["terminal"] = np.broadcast_to(bounds.terminal, bounds.values.shape)
    columns |= {name: bounds.q_values[..., x] for x, name in enumerate(_q_names(bounds.space))}
    metadata = {**bounds.about(), "assumptions": bounds.assumptions}
    save_by_state(path, bounds.KIND, bounds.space, columns, metadata, bounds.checksum)


def load_bounds(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Return the bounds that `save_bounds` wrote."""

    def build(contents: Contents) -> Kind:
        columns, space, held = columns_by_state(contents), contents.space, contents.metadata
        settings = {field.name: held[field.name] for field in dataclasses.fields(kind) if field.name not in kind.ARRAYS}
        arrays = {
            "values": columns["value"],
            "vacuous": columns["vacuous"],
            "terminal": columns["terminal"].reshape(-1, len(space.states))[0],
            "q_values": np.stack([columns[name] for name in _q_names(space)], axis=-1),
        }
        plain = {
            "space": space,
            "sources": tuple(held["sources"]),
            "confounding": {name: float(gamma) for name, gamma in held["confounding"].items()},
            "caveats": tuple(held["caveats"]),
        }
        return kind(**settings | arrays | plain)

    return load(path, kind.KIND, build)


def _q_names(space: Space) -> list[str]:
    """Return a column for each action; those that look alike, as 1 and "1" do, have their position behind them."""
    names = [f"q_value of {action}" for action in space.actions]
    return [f"{name} ({x})" if names.count(name) > 1 else name for x, name in enumerate(names)]
