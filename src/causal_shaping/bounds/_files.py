"""Bounds and sensitivity analyses to files and back."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from causal_shaping.bounds.results import Bounds, q_names
from causal_shaping.errors import DataError
from causal_shaping.io.by_state import columns_by_state, save_by_state
from causal_shaping.io.container import Contents, load, save
from causal_shaping.io.files import CSV, TABLES, check_target, write_table
from causal_shaping.io.labels import positions, state_columns

if TYPE_CHECKING:
    from causal_shaping.bounds.sensitivity import Sensitivity

Kind = TypeVar("Kind", bound=Bounds)
Analysis = TypeVar("Analysis", bound="Sensitivity")


def save_bounds(bounds: Bounds, path: str | os.PathLike[str]) -> None:
    """Write the columns of bounds to a Parquet file, the settings and the assumptions in words in its metadata."""
    metadata = {**bounds.metadata, "assumptions": bounds.assumptions}
    save_by_state(path, bounds.KIND, bounds.space, bounds.columns(), metadata, bounds.checksum)


def load_bounds(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Return the bounds that `save_bounds` wrote."""

    def build(contents: Contents) -> Kind:
        columns, space, held = columns_by_state(contents), contents.space, contents.metadata
        settings = {field.name: held[field.name] for field in dataclasses.fields(kind) if field.name not in kind.ARRAYS}
        settings |= {name: tuple(held[name]) for name in ("sources", "caveats")}
        settings |= {"space": space, "values": columns["value"], "vacuous": columns["vacuous"]}
        settings["confounding"] = {name: float(gamma) for name, gamma in held["confounding"].items()}
        settings["terminal"] = columns["terminal"].reshape(-1, len(space.states))[0]
        settings["q_values"] = np.stack([columns[name] for name in q_names(space)], axis=-1)
        return kind(**settings)

    return load(path, kind.KIND, build)


def save_sensitivity(found: Sensitivity, path: str | os.PathLike[str]) -> None:
    """Write a row per Gamma and state, states by label: to Parquet with all else in the metadata, or to CSV."""
    gammas, states = found.ceilings.shape
    table: dict[str, Any] = dict(state_columns(found.space, np.tile(np.arange(states, dtype=np.int32), gammas)))
    for name, column in found.columns().items():
        table[found.space.free_name(name)] = pa.array(column.ravel(), from_pandas=True)
    if check_target(path, TABLES).name.lower().endswith(CSV):
        write_table(path, table)
        return
    metadata = {
        "confounding": [str(gamma) for gamma in found.confounding],
        "suboptimal": [str(share) for share in found.suboptimal],
        "contradictions": found.contradictions,
        "best_action": found.best_action.tolist(),
    }
    save(path, found.KIND, table, metadata, space=found.space, checksum=found.checksum)


def load_sensitivity(kind: type[Analysis], path: str | os.PathLike[str]) -> Analysis:
    """Return what `save_sensitivity` wrote to a Parquet file."""

    def build(contents: Contents) -> Analysis:
        table, space, held = contents.table, contents.space, contents.metadata
        gammas = tuple(map(float, held["confounding"]))
        place = positions(table, space.columns, space.find, "state").astype(np.int64)
        place += len(space.states) * np.searchsorted(gammas, table[space.free_name("confounding")].to_numpy())
        if not np.array_equal(np.sort(place), np.arange(len(gammas) * len(space.states))):
            raise DataError("it does not hold each Gamma and state once")
        order = np.argsort(place)

        def column(name: str) -> Any:
            return table[space.free_name(name)].to_numpy()[order].reshape(len(gammas), -1)

        return kind(
            space=space,
            confounding=gammas,
            ceilings=column("ceiling"),
            floors=column("floor"),
            suboptimal=np.array(held["suboptimal"], dtype=np.float64),
            singled_out=column("singled_out"),
            contradictions=tuple(held["contradictions"]),
            best_action=np.array(held["best_action"], dtype=np.int32),
            breakdown=column("breakdown")[0],
            bounded=column("bounded")[0],
        )

    return load(path, kind.KIND, build)
