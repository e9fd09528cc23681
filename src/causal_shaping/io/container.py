"""The container of what this package saves and loads: a Parquet file that any tool can open.

Labels are in columns. One metadata key, `causal_shaping`, holds JSON: the kind of the contents, the
version of its format, the space, and whatever else the kind needs. Another holds the checksum: the
SHA-256 of all other bytes of the file, columns and metadata. It is verified on loading, before
anything is made of the rows. It tells damage; it is no signature.

- `save`, `load`: the one way in and out; kind, version and checksum are checked here.
- `read_metadata`: what a file says beside its rows, once it is known to be undamaged.
- `kind_of`: what kind of contents a file claims to hold.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.space import Space
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.files import PARQUET, replacing
from causal_shaping.io.inputs import BLANK, InputFile, filled, fits, parse_json

METADATA_KEY, CHECKSUM_KEY = b"causal_shaping", b"causal_shaping_checksum"
CHECKSUM_KEYS = CHECKSUM_KEY, b"causal_shaping_seal"
"""Where the checksum is; version 0.2 used the second name."""

FOOTER_END = 8
"""A Parquet file ends with the size of its footer, 4 bytes, and 4 letters."""
MARK = re.compile(b"(?:" + b"|".join(CHECKSUM_KEYS) + rb").{0,8}[0-9a-f]{64}", re.DOTALL)
"""The name of a checksum and the checksum, as they stand in a footer."""
MAX_TEXT = 2**31 - 1
"""A text in the metadata of a Parquet file is not longer than this."""
MAX_RATIO, FREE_BYTES = 512, 2**20
"""A file holds at most so many values for each of its bytes, and for so many bytes more."""

VERSIONS = {
    "logs": 2,
    "counts": 4,
    "posterior": 2,
    "potential": 4,
    "ceilings": 7,
    "floors": 5,
    "sensitivity": 3,
    "run": 4,
    "learned table": 4,
    "training run": 4,
    "worth": 2,
}
"""Kind to the version of its format, raised by any change that an older reader would misread."""
OLDEST = VERSIONS | {"potential": 3, "ceilings": 6}
"""Kind to the oldest version that is read: those of release 0.2."""

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
) -> None:
    """Write a table, or columns by name, with plain values as metadata to a Parquet file."""
    header = {"kind": kind, "version": VERSIONS[kind], **metadata}
    if space is not None:
        header["space"] = space.as_plain()
    # The checksum comes last: labels that look like its place are before it.
    keys = {METADATA_KEY: json.dumps(header), CHECKSUM_KEY: BLANK}
    with replacing(path, PARQUET) as temporary:
        pq.write_table(pa.table(table).replace_schema_metadata(keys), temporary)
        temporary.write_bytes(filled(temporary.read_bytes()))


def load(path: str | os.PathLike[str], kind: str, build: Callable[[Contents], Made]) -> Made:
    """Return what `build` makes of the contents that `save` wrote.

    Raises:
        FileError: if the file does not exist, holds something else, has a version that cannot be
            read, or was changed.
    """
    content = InputFile.at(path).read()
    metadata = _metadata(path, content, kind)
    if metadata is None:
        raise FileError(f"{path} holds no {kind} of this package.")
    try:
        return build(Contents(_rows(content), metadata))
    except Warning:
        raise
    except Exception as error:  # whatever is wrong inside: it is the file that is to blame
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        message = f"{path} is not a complete file of {kind}: {why}. Was it changed?"
        raise FileError(message) from error


def read_metadata(file: InputFile, kind: str) -> dict[str, Any] | None:
    """Return the metadata of a Parquet file of this package; None for one of another program.

    Logs can be larger than memory, so the file is mapped. Of others' files the footer alone is read.
    """
    with file.open() as opened:
        content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if file.size else b""
        return _metadata(file.path, content, kind)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a file of this package, None for any other file."""
    try:
        keys = _parquet(InputFile.at(path).read()).metadata.metadata
        return str(parse_json(keys[METADATA_KEY])["kind"])
    except (FileError, OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None


def _metadata(path: str | os.PathLike[str], content: bytes | mmap.mmap, kind: str) -> dict[str, Any] | None:
    """Return the metadata of an undamaged file of ours of some kind; None for a file of others."""
    try:
        keys = _parquet(content).metadata.metadata or {}
    except Exception as error:  # Arrow has many kinds
        why = str(error).rstrip(".")
        raise FileError(f"{path} is not a complete Parquet file: {why}.") from error
    # A damaged file of ours can lose its metadata, but its footer still has its checksum behind a name.
    footer = content[-FOOTER_END - int.from_bytes(content[-FOOTER_END:][:4], "little") :]
    if METADATA_KEY not in keys and not MARK.search(footer):
        return None
    checksum = next((keys[name] for name in CHECKSUM_KEYS if name in keys), b"")
    try:
        metadata = parse_json(keys[METADATA_KEY])
        stored, version = metadata["kind"], int(metadata["version"])
    except (ValueError, KeyError, TypeError) as error:
        why = "it has lost its metadata" if isinstance(error, KeyError) else f"its metadata cannot be read ({error})"
        raise FileError(f"{path} was changed after it was written: {why}.") from error
    if stored != kind:
        raise FileError(f"{path} holds {stored}, not {kind}.")
    # A newer version may compute its checksum in another way.
    if not OLDEST[kind] <= version <= VERSIONS[kind]:
        age = "a newer" if version > VERSIONS[kind] else "an older"
        raise FileError(
            f"{path} was written by {age} version of this package (format {version} of {kind}; this "
            f"one reads {OLDEST[kind]} to {VERSIONS[kind]}). Compute it again, or use that version."
        )
    if not fits(content, checksum):
        why = "its checksum does not fit its contents"
        raise FileError(f"{path} was changed after it was written: {why}.")
    return metadata


def _rows(content: bytes) -> pa.Table:
    """Return the rows; refuse a file that declares more of them than so few bytes would hold."""
    parquet = _parquet(content)
    values = parquet.metadata.num_rows * parquet.metadata.num_columns
    if values > MAX_RATIO * (len(content) + FREE_BYTES):
        raise DataError("it declares far more values than its size allows for")
    return parquet.read(use_threads=False)


def _parquet(content: bytes | mmap.mmap) -> pq.ParquetFile:
    """Open the bytes of a Parquet file, whose metadata may be longer than Arrow's usual 100 MB.

    No thread of Arrow's may hold them: one that lets go of them last, while Python ends, aborts.
    """
    longest = max(1, min(len(content), MAX_TEXT))
    buffer = pa.BufferReader(content)
    return pq.ParquetFile(buffer, pre_buffer=False, thrift_string_size_limit=longest)
