"""The container of everything that this package saves and loads: a Parquet file that any tool can open.

Labels stand in columns. One metadata key, `causal_shaping`, holds JSON: the kind of the contents, the version of its
format, a checksum, the space, and whatever else the kind needs. Another, `causal_shaping_seal`, holds the SHA-256 of
all other bytes of the file: a changed byte anywhere is noticed, in one pass, before anything is made of the rows.

- `save`, `load`: the one way in and out; kind, version, seal and checksum are checked here, in the same words.
- `seal`: to be done again by whoever changes a file on purpose. It is no signature: anybody can.
- `read_metadata`, `kind_of`: what a file says without reading its rows.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.space import Space
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.files import PARQUET, replacing
from causal_shaping.io.inputs import InputFile, parse_json

METADATA_KEY = b"causal_shaping"
SEAL_KEY = b"causal_shaping_seal"
SEAL_BYTES = 64
SEAL_START = SEAL_KEY + bytes([0x18, SEAL_BYTES])
"""What stands before the seal in the footer of a Parquet file: its key, and that a text of 64 bytes follows."""
FOOTER_END = 8
"""A Parquet file ends with the size of its footer, 4 bytes, and 4 letters."""
BLOCK_BYTES = 2**20
MAX_TEXT = 2**31 - 1
"""A text in the footer of a Parquet file is not longer than this."""
MAX_METADATA = 1_500_000_000
"""Metadata are not longer than this: Arrow writes them a second time, 4 bytes for 3, into such a text."""
VALUE_BYTES = 8
FREE_BYTES = 2**20
MAX_RATIO = 4096
"""A file has at most so many bytes in memory for each byte on disk, and for `FREE_BYTES` more."""

VERSIONS: Mapping[str, tuple[int, int]] = {
    "logs": (1, 2),
    "counts": (1, 4),
    "posterior": (1, 2),
    "potential": (1, 4),
    "ceilings": (5, 7),
    "floors": (4, 5),
    "sensitivity": (2, 3),
    "run": (2, 4),
    "learned table": (2, 4),
    "training run": (2, 4),
    "worth": (1, 2),
    "study": (1, 2),
    "field": (2, 2),
}
"""Kind to the oldest version of its format that is read, and the one that is written.

The latter is raised by any change that an older reader would misread. Files of the newest version are sealed.
"""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Contents:
    """What a file holds: the rows, and everything else as plain values."""

    table: pa.Table
    metadata: Mapping[str, Any]

    @cached_property
    def space(self) -> Space:
        """The states and actions that were saved."""
        return Space.from_plain(self.metadata["space"])


def save(
    path: str | os.PathLike[str],
    kind: str,
    table: pa.Table | Mapping[str, Any],
    metadata: Mapping[str, Any],
    *,
    space: Space | None = None,
    checksum: str | None = None,
) -> None:
    """Write a table, or columns by name, with plain values as metadata to a Parquet file, and seal it.

    The checksum is that of the object that is saved, `made.checksum`; by default that of the rows in their order.
    """
    rows = pa.table(table)
    header = {"kind": kind, "version": VERSIONS[kind][1], "checksum": checksum or rows_checksum(rows), **metadata}
    if space is not None:
        header["space"] = space.as_plain()
    keys = {METADATA_KEY: json.dumps(header), SEAL_KEY: "0" * SEAL_BYTES}
    if len(keys[METADATA_KEY]) > MAX_METADATA:
        raise FileError(f"{path} cannot be written: metadata of more than 1.5 GB do not fit into a Parquet file.")
    with replacing(path, PARQUET) as temporary:
        pq.write_table(rows.replace_schema_metadata(keys), temporary)
        seal(temporary)


def seal(path: str | os.PathLike[str]) -> None:
    """Write the SHA-256 of all other bytes of a Parquet file to the place that is kept for it in its footer."""
    with open(path, "r+b") as file:
        place = _seal_place(file)
        if place is None:
            raise ValueError(f"{path} has no place for a seal.")
        digest = _digest(file, place)
        file.seek(place)
        file.write(digest)


def load(path: str | os.PathLike[str], kind: str, build: Callable[[Contents], Made]) -> Made:
    """Return what `build` makes of the contents that `save` wrote.

    If it has a `checksum`, that must be the one that was saved; if it has none, the rows must have it.

    Raises:
        FileError: if the file does not exist, holds something else, has a version that cannot be read, or was changed.
    """
    opened = InputFile.at(path)
    with opened.open() as file:
        metadata = _checked_metadata(file, opened, kind)
        if metadata is None:
            raise FileError(f"{path} holds no {kind} of this package.")
        try:
            contents = Contents(_rows(file, opened), metadata)
            made = build(contents)
        except Warning:
            raise
        except Exception as error:  # whatever is wrong inside: it is the file that is to blame
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise FileError(f"{path} is not a complete file of {kind}: {why}. Was it changed?") from error
    if "checksum" in metadata:
        check_checksum(path, metadata["checksum"], getattr(made, "checksum", None) or rows_checksum(contents.table))
    return made


def _rows(file: BinaryIO, opened: InputFile) -> pa.Table:
    """Return the rows; refuse a file that declares more of them than so few bytes would hold."""
    with _parquet(file, opened) as parquet:
        footer = parquet.metadata
        chunks = (
            footer.row_group(i).column(j) for i in range(footer.num_row_groups) for j in range(footer.num_columns)
        )
        if VALUE_BYTES * sum(chunk.num_values for chunk in chunks) > MAX_RATIO * (opened.size + FREE_BYTES):
            raise DataError("it declares far more values than its size allows for")
        return parquet.read(use_threads=False)


def _parquet(file: BinaryIO, opened: InputFile) -> pq.ParquetFile:
    """Open a Parquet file; its metadata may be as long as the file, where Arrow's own limit is 100 MB.

    No thread of Arrow's may read from a file of Python's: one that lets go of it last, while Python ends, aborts.
    """
    return pq.ParquetFile(file, pre_buffer=False, thrift_string_size_limit=max(1, min(opened.size, MAX_TEXT)))


def _keys(file: BinaryIO, opened: InputFile) -> dict[bytes, bytes]:
    """Return the metadata of an open Parquet file by key; the file stays open."""
    return _parquet(file, opened).schema_arrow.metadata or {}


def check_checksum(path: str | os.PathLike[str], saved: str | None, found: str) -> None:
    """Refuse a file whose contents are not those that were saved; None where no checksum was."""
    if saved not in (None, found):
        raise FileError(f"{path} was changed after it was written: its checksum does not fit its contents.")


def read_metadata(opened: InputFile, kind: str) -> dict[str, Any] | None:
    """Return the metadata of a Parquet file of this package, which was not changed; None for one of another program.

    All bytes of the file are read once, to compare them with its seal.
    """
    with opened.open() as file:
        return _checked_metadata(file, opened, kind)


def _checked_metadata(file: BinaryIO, opened: InputFile, kind: str) -> dict[str, Any] | None:
    """Return the metadata of an open file after its kind, version and seal have been checked."""
    path = opened.path
    try:
        keys = _keys(file, opened)
    except Exception as error:  # Arrow has many kinds
        raise FileError(f"{path} is not a complete Parquet file: {str(error).rstrip('.')}.") from error
    if METADATA_KEY not in keys:
        if SEAL_KEY in keys:
            raise FileError(f"{path} was changed after it was written: it has a seal, but lacks its metadata.")
        return None
    try:
        metadata = parse_json(keys[METADATA_KEY])
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
    place = _seal_place(file)
    if version == newest and place is None:
        raise FileError(f"{path} was changed after it was written: it lacks its seal.")
    if place is not None:
        file.seek(place)
        check_checksum(path, file.read(SEAL_BYTES).decode("latin-1"), _digest(file, place).decode())
        if version < newest:
            metadata.pop("checksum", None)  # made otherwise, maybe; the seal is that of all bytes
    file.seek(0)
    return metadata


def _seal_place(file: BinaryIO) -> int | None:
    """Return where in a Parquet file its seal stands, None if it has none."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - FOOTER_END))
    size = int.from_bytes(file.read(4), "little")
    begin = max(0, end - FOOTER_END - size)
    file.seek(begin)
    found = file.read().rfind(SEAL_START)  # the last: labels, which could look like it, stand before
    place = begin + found + len(SEAL_START)
    return None if found < 0 or place + SEAL_BYTES > end else place


def _digest(file: BinaryIO, place: int) -> bytes:
    """Return the SHA-256 of a file in hexadecimal digits, its seal left out."""
    digest, at = hashlib.sha256(), 0
    file.seek(0)
    while block := file.read(BLOCK_BYTES):
        before, after = max(0, place - at), max(0, place + SEAL_BYTES - at)
        digest.update(block[:before])
        digest.update(block[after:])
        at += len(block)
    return digest.hexdigest().encode()


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a file of this package, None for any other file."""
    try:
        opened = InputFile.at(path)
        with opened.open() as file:
            return str(parse_json(_keys(file, opened)[METADATA_KEY])["kind"])
    except (FileError, OSError, pa.ArrowException, ValueError, KeyError, TypeError):
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
