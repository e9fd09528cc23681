"""The container of everything that this package saves and loads: a Parquet file that any tool can open.

Labels stand in columns. One metadata key, `causal_shaping`, holds JSON: the kind of the contents, the version of its
format, a checksum, the space, and whatever else the kind needs.

- `save`, `load`: the one way in and out; kind, version and checksum are checked here, in the same words.
- `read_metadata`, `kind_of`: what a file says without reading its rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.space import Space
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.files import PARQUET, replacing

METADATA_KEY = b"causal_shaping"

VERSIONS: Mapping[str, tuple[int, int]] = {
    "logs": (1, 1),
    "counts": (1, 3),
    "posterior": (1, 1),
    "potential": (1, 2),
    "ceilings": (5, 5),
    "floors": (4, 4),
    "sensitivity": (2, 2),
    "episode ceilings": (1, 1),
    "run": (2, 3),
    "learned table": (2, 3),
    "training run": (2, 3),
    "worth": (1, 1),
    "study": (1, 1),
}
"""Kind to the oldest version of its format that is read, and the one that is written.

The latter is raised by any change that an older reader would misread.
"""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Contents:
    """What a file holds: the rows, and everything else as plain values."""

    table: pa.Table
    metadata: Mapping[str, Any]

    @property
    def space(self) -> Space:
        """The states and actions that were saved."""
        return Space.from_json(json.dumps(self.metadata["space"]))


def save(
    path: str | os.PathLike[str],
    kind: str,
    table: pa.Table | Mapping[str, Any],
    metadata: Mapping[str, Any],
    *,
    space: Space | None = None,
    checksum: str | None = None,
) -> None:
    """Write a table, or columns by name, with plain values as metadata to a Parquet file.

    The checksum is that of the object that is saved, `made.checksum`; by default that of the rows in their order.
    """
    rows = pa.table(table)
    header = {"kind": kind, "version": VERSIONS[kind][1], "checksum": checksum or rows_checksum(rows), **metadata}
    if space is not None:
        header["space"] = json.loads(space.to_json())
    with replacing(path, PARQUET) as temporary:
        pq.write_table(rows.replace_schema_metadata({METADATA_KEY: json.dumps(header)}), temporary)


def load(path: str | os.PathLike[str], kind: str, build: Callable[[Contents], Made]) -> Made:
    """Return what `build` makes of the contents that `save` wrote.

    If it has a `checksum`, that must be the one that was saved; if it has none, the rows must have it.

    Raises:
        FileError: if the file does not exist, holds something else, has a version that cannot be read, or was changed.
    """
    metadata = read_metadata(path, kind)
    if metadata is None:
        raise FileError(f"{path} holds no {kind} of this package.")
    try:
        contents = Contents(pq.read_table(path), metadata)
        made = build(contents)
    except (KeyError, TypeError, ValueError, AttributeError, OSError, DataError, pa.ArrowException) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise FileError(f"{path} is not a complete file of {kind}: {why}. Was it changed?") from error
    if "checksum" in metadata:
        check_checksum(path, metadata["checksum"], getattr(made, "checksum", None) or rows_checksum(contents.table))
    return made


def check_checksum(path: str | os.PathLike[str], saved: str | None, found: str) -> None:
    """Refuse a file whose contents are not those that were saved; None where no checksum was."""
    if saved not in (None, found):
        raise FileError(f"{path} was changed after it was written: its checksum does not fit its contents.")


def read_metadata(path: str | os.PathLike[str], kind: str) -> dict[str, Any] | None:
    """Return the metadata of a Parquet file of this package, None for a file of another program."""
    if not Path(path).is_file():
        raise FileError(f"{path} does not exist, or is not a file.")
    try:
        text = (pq.read_schema(path).metadata or {}).get(METADATA_KEY)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{path} is not a complete Parquet file: {str(error).rstrip('.')}.") from error
    if text is None:
        return None
    try:
        metadata = dict(json.loads(text))
        held, version = metadata["kind"], int(metadata["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"The metadata of {path} cannot be read ({error!r}). Was it changed?") from error
    if held != kind:
        raise FileError(f"{path} holds {held}, not {kind}.")
    oldest, newest = VERSIONS[kind]
    if version > newest:
        raise FileError(
            f"{path} was written by a newer version of this package (format {version} of {kind}; this one reads up to "
            f"{newest}). Update the package to read it."
        )
    if version < oldest:
        raise FileError(
            f"{path} was written by version {version} of the format of {kind}; this package reads {oldest} to "
            f"{newest}. Compute it again."
        )
    if version == newest and "checksum" not in metadata:
        raise FileError(f"The metadata of {path} lack a checksum. Was it changed?")
    return metadata


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a file of this package, None for any other file."""
    try:
        return str(json.loads((pq.read_schema(path).metadata or {})[METADATA_KEY])["kind"])
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None


def rows_checksum(table: pa.Table) -> str:
    """Return a SHA-256 of the rows of a table, in their order."""
    texts, arrays = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_primitive(column.type) and not column.null_count:
            texts.append([name, str(column.type)])
            arrays.append(column.to_numpy())
        else:
            texts.append([name, column.to_pylist()])
    return checksum_of(json.dumps(texts), arrays)
