"""A sensitivity analysis on disk."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from causal_shaping.bounds.sensitivity import TABLES, Sensitivity
from causal_shaping.data.space import Space
from causal_shaping.errors import FileError
from causal_shaping.io.files import replacing
from causal_shaping.io.labels import positions
from causal_shaping.io.parquet import METADATA_KEY, read_metadata, state_columns

SENSITIVITY_VERSION = 1


def save_sensitivity(found: Sensitivity, path: str | os.PathLike[str]) -> None:
    """Write a row per Gamma and state, states by label: to Parquet with all else in the metadata, or to CSV."""
    gammas, states = found.ceilings.shape
    labels = state_columns(found.space, np.tile(np.arange(states, dtype=np.int32), gammas))
    columns = {name: pa.array(column.ravel(), from_pandas=True) for name, column in found.columns().items()}
    table = pa.table(labels | {_free(name, found.space): column for name, column in columns.items()})
    with replacing(path, TABLES) as temporary:
        if temporary.suffix.lower() == ".csv":
            plain = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in table.schema]
            pc.write_csv(table.cast(pa.schema(plain)), temporary)
            return
        metadata = {
            "kind": found.KIND,
            "version": SENSITIVITY_VERSION,
            "checksum": found.checksum,
            "space": json.loads(found.space.to_json()),
            "confounding": [str(gamma) for gamma in found.confounding],
            "suboptimal": [str(share) for share in found.suboptimal],
            "contradictions": found.contradictions,
            "best_action": found.best_action.tolist(),
        }
        pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata)}), temporary)


def load_sensitivity(path: str | os.PathLike[str]) -> Sensitivity:
    """Return what `save_sensitivity` wrote to a Parquet file."""
    metadata = read_metadata(path, kind=Sensitivity.KIND, newest=SENSITIVITY_VERSION)
    if metadata is None:
        raise FileError(f"{path} holds no sensitivity analysis of this package.")
    table, space = pq.read_table(path), Space.from_json(metadata["space"])
    gammas = tuple(map(float, metadata["confounding"]))
    place = positions(table, space.columns, space.states, "state").astype(np.int64)
    place += len(space.states) * np.searchsorted(gammas, table[_free("confounding", space)].to_numpy())
    if not np.array_equal(np.sort(place), np.arange(len(gammas) * len(space.states))):
        raise FileError(f"{path} does not hold each Gamma and state once. Was it cut?")
    order = np.argsort(place)

    def column(name: str) -> Any:
        return table[_free(name, space)].to_numpy()[order].reshape(len(gammas), -1)

    found = Sensitivity(
        space=space,
        confounding=gammas,
        ceilings=column("ceiling"),
        floors=column("floor"),
        suboptimal=np.array(metadata["suboptimal"], dtype=np.float64),
        singled_out=column("singled_out"),
        contradictions=tuple(metadata["contradictions"]),
        best_action=np.array(metadata["best_action"], dtype=np.int32),
        breakdown=column("breakdown")[0],
        bounded=column("bounded")[0],
    )
    if found.checksum != metadata["checksum"]:
        raise FileError(f"{path} was changed after it was written: its checksum does not fit its contents.")
    return found


def _free(name: str, space: Space) -> str:
    while name in space.columns:
        name = "_" + name
    return name
