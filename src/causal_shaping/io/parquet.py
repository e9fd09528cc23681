"""Logs and counts on disk: labels in the columns, everything else about them in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from causal_shaping.data.arrays import IntArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import UNKNOWN, Logs
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.files import PARQUET, replacing
from causal_shaping.io.labels import positions

CSV = (".csv", ".csv.gz", ".csv.zst")
LOG_FILES = (*PARQUET, *CSV)
"""The endings of a file of logs."""
METADATA_KEY = b"causal_shaping"
LOGS_VERSION = 1
COUNTS_VERSION = 1
"""The versions of the schemas, raised by any change that an older reader would misread."""


def write_logs(logs: Logs, path: str | os.PathLike[str]) -> None:
    """Write logs to a Parquet or CSV file that any tool can open.

    Columns: source, episode, step, those of the state (`space.columns`), action, reward, those of the next
    state (the same with `next_` in front, null where unknown), terminated, truncated. States and actions are
    written as their labels. In Parquet, the metadata key `causal_shaping` holds JSON: the version of the schema, the
    space, where the logs come from (world, demonstrator, seed), and a checksum. CSV (.csv, .csv.gz, .csv.zst) holds
    the rows alone.
    """
    table = logs_table(logs)
    with replacing(path, LOG_FILES) as temporary:
        if not temporary.name.lower().endswith(CSV):
            about = {
                "kind": "logs",
                "version": LOGS_VERSION,
                "source": logs.source,
                "space": json.loads(logs.space.to_json()),
                "metadata": dict(logs.metadata),
                "checksum": logs.checksum,
            }
            pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(about)}), temporary)
            return
        plain = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in table.schema]
        packed = {".gz": "gzip", ".zst": "zstd"}.get(temporary.suffix.lower())
        with pa.output_stream(str(temporary), compression=packed) as stream:
            pc.write_csv(table.cast(pa.schema(plain)), stream)


def read_metadata(
    path: str | os.PathLike[str], kind: str = "logs", newest: int = LOGS_VERSION
) -> dict[str, Any] | None:
    """Return what a Parquet file of ours says of itself, None for a file of somebody else's.

    Args:
        path: the file.
        kind: what it must hold.
        newest: the newest version of that schema.
    """
    try:
        text = (pq.read_schema(path).metadata or {}).get(METADATA_KEY)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{path} is not a whole Parquet file: {error}.") from error
    if text is None:
        return None
    try:
        about = json.loads(text)
        held, version = about.get("kind"), int(about["version"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"What {path} says of itself cannot be read ({error!r}). Was it changed?") from error
    if held != kind:
        raise FileError(f"{path} holds {held}, not {kind}.")
    if version > newest:
        raise FileError(f"{path} was written by a newer version of this package. Update it to read the file.")
    return {**about, "space": json.dumps(about["space"])}


def write_counts(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write counts to a Parquet file: an entry a row, sources, states and actions by label."""
    columns: dict[str, Any] = {"source": _labels("source", counts.sources, counts.source)}
    if counts.step is not None:
        columns["step"] = counts.step
    columns |= label_columns(counts.space, counts.state, counts.action, counts.next_state)
    for name in ("terminated", "n", "reward_sum", "reward_min", "reward_max"):
        columns[name] = getattr(counts, name)
    about = {
        "kind": "counts",
        "version": COUNTS_VERSION,
        "space": json.loads(counts.space.to_json()),
        "sources": dict(zip(counts.sources, counts.discrete_rewards, strict=True)),
        "population": counts.population,
    }
    with replacing(path, PARQUET) as temporary:
        table = pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(about)})
        pq.write_table(table, temporary)


def read_counts(path: str | os.PathLike[str]) -> Counts:
    """Return the counts that `write_counts` wrote."""
    if not Path(path).is_file():
        raise FileError(f"{path} does not exist, or is not a file.")
    about = read_metadata(path, kind="counts", newest=COUNTS_VERSION)
    if about is None:
        raise FileError(f"{path} holds no counts of this package.")
    table = pq.read_table(path)
    space, sources = Space.from_json(about["space"]), about["sources"]
    numbers = ("terminated", "n", "reward_sum", "reward_min", "reward_max")
    return Counts(
        space=space,
        sources=tuple(sources),
        discrete_rewards=tuple(sources.values()),
        source=positions(table, ["source"], list(sources), "source"),
        step=table["step"].to_numpy() if "step" in table.column_names else None,
        state=positions(table, space.columns, space.states, "state"),
        action=positions(table, ["action"], space.actions, "action"),
        next_state=positions(table, space.next_columns, space.states, "state"),
        population=about["population"],
        **{name: table[name].to_numpy() for name in numbers},
    )


def logs_table(logs: Logs) -> pa.Table:
    """Return logs as an Arrow table, states and actions by label."""
    labels = label_columns(logs.space, logs.state, logs.action, logs.next_state)
    followers = {name: labels.pop(name) for name in logs.space.next_columns}
    return pa.table(
        {
            "source": pa.DictionaryArray.from_arrays(np.zeros(len(logs), dtype=np.int32), [logs.source]),
            "episode": logs.episode,
            "step": logs.step,
            **labels,
            "reward": logs.reward,
            **followers,
            "terminated": logs.terminated,
            "truncated": logs.truncated,
        }
    )


def label_columns(space: Space, state: IntArray, action: IntArray, next_state: IntArray) -> dict[str, pa.Array]:
    """Return the columns of the state, the action and the next state, by label."""
    return {
        **state_columns(space, state),
        "action": _labels("action", space.actions, action),
        **dict(zip(space.next_columns, state_columns(space, next_state).values(), strict=True)),
    }


def state_columns(space: Space, state: IntArray) -> dict[str, pa.Array]:
    """Return the columns of a state, by label."""
    parts = zip(*(label if isinstance(label, tuple) else (label,) for label in space.states), strict=True)
    return {name: _labels(name, part, state) for name, part in zip(space.columns, parts, strict=True)}


def _labels(name: str, labels: Sequence[Label | int | str], positions: IntArray) -> pa.Array:
    """Return the labels at the given positions as a column, null for `UNKNOWN`."""
    if len({type(label) for label in labels}) > 1:
        raise DataError(f"Column {name!r} would hold integers and strings. Use labels of one type.")
    unknown: Any = positions == UNKNOWN
    if isinstance(labels[0], str):
        index = pa.array(positions, mask=unknown)
        return pa.DictionaryArray.from_arrays(index, pa.array(labels))
    return pa.array(np.array(labels, dtype=np.int64)[positions], mask=unknown)
