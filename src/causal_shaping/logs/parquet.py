"""Logs as Parquet: labels in the columns, everything else about them in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data import UNKNOWN, IntArray, Label, Logs
from causal_shaping.errors import DataError
from causal_shaping.files import PARQUET, replacing

METADATA_KEY = b"causal_shaping"
LOGS_VERSION = 1
"""The version of the schema, raised by any change that an older reader would misread."""


def write_logs(logs: Logs, path: str | os.PathLike[str]) -> None:
    """Write logs to a Parquet file that any tool can open.

    Columns: source, episode, step, those of the state (`space.columns`), action, reward, those of the next
    state (the same with `next_` in front, null where unknown), terminated, truncated. States and actions are
    written as their labels. The metadata key `causal_shaping` holds JSON: the version of the schema, the
    space, where the logs come from (world, demonstrator, seed), and a checksum.
    """
    about = {
        "kind": "logs",
        "version": LOGS_VERSION,
        "source": logs.source,
        "space": json.loads(logs.space.to_json()),
        "metadata": dict(logs.metadata),
        "checksum": logs.checksum,
    }
    table = logs_table(logs).replace_schema_metadata({METADATA_KEY: json.dumps(about)})
    with replacing(path, PARQUET) as temporary:
        pq.write_table(table, temporary)


def logs_table(logs: Logs) -> pa.Table:
    """Return logs as an Arrow table, states and actions by label."""
    states = [label if isinstance(label, tuple) else (label,) for label in logs.space.states]
    parts = list(zip(*states, strict=True))
    source = pa.DictionaryArray.from_arrays(np.zeros(len(logs), dtype=np.int32), [logs.source])
    columns = {"source": source, "episode": logs.episode, "step": logs.step}
    for name, part in zip(logs.space.columns, parts, strict=True):
        columns[name] = _labels(name, part, logs.state)
    columns["action"] = _labels("action", logs.space.actions, logs.action)
    columns["reward"] = logs.reward
    for name, part in zip(logs.space.next_columns, parts, strict=True):
        columns[name] = _labels(name, part, logs.next_state)
    columns["terminated"], columns["truncated"] = logs.terminated, logs.truncated
    return pa.table(columns)


def _labels(name: str, labels: Sequence[Label | int | str], positions: IntArray) -> pa.Array:
    """Return the labels at the given positions as a column, null for `UNKNOWN`."""
    if len({type(label) for label in labels}) > 1:
        raise DataError(f"Column {name!r} would hold integers and strings. Use labels of one type.")
    unknown: Any = positions == UNKNOWN
    if isinstance(labels[0], str):
        index = pa.array(positions, mask=unknown)
        return pa.DictionaryArray.from_arrays(index, pa.array(labels))
    return pa.array(np.array(labels, dtype=np.int64)[positions], mask=unknown)
