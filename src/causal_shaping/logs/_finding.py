"""Where the rows of a log lie, and what is known of them before they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.io.container import read_metadata
from causal_shaping.io.files import CSV, PARQUET, TABLES, Scratch
from causal_shaping.io.minari import minari_table, write_minari
from causal_shaping.logs.table import reading

MINARI = "minari:"
ROW = "causal_shaping_row"
MAX_LINE_BYTES = 2_000_000
"""A line of a CSV that is longer than this is taken for a broken file."""


class ArrowStream(Protocol):
    """A table in memory: a data frame of pandas or Polars, an Arrow table, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as Arrow data."""
        ...


Where: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | ibis.Table | ArrowStream
"""What can be opened; `find` says how each is read."""


def is_table(where: Any) -> bool:
    """Return whether something is a table in memory, or one of an engine."""
    return isinstance(where, ibis.Table) or hasattr(where, "__arrow_c_stream__")


@dataclass(frozen=True)
class RawLogs:
    """Rows as they lie somewhere, and what is known of them before they are read."""

    rows: ibis.Table
    origin: str  # what to call it in messages
    name: str  # the source's, where neither the user nor the metadata give one
    state: tuple[str, ...] = ("state",)  # its columns, where neither the user nor the metadata give them
    row: str | None = None  # the column that numbers the rows of a file, from 0
    file: str | None = None  # the column that names the file of a row
    source: str | None = None  # this and the next three: from the metadata of our own files
    space: Space | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    checksum: str | None = None
    header: bool = False  # whether a line of column names comes before the first row
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of columns that hold tensors as flat lists
    files: Any = None  # what keeps temporary files that hold the rows from being removed

    @property
    def places(self) -> dict[str, str]:
        """The columns that are not the user's, but locate a row: its number and its file."""
        places = {"row": self.row, "file": self.file}
        return {name: column for name, column in places.items() if column is not None}


def find(where: Where, memory_limit: str | None, whole: bool = False) -> RawLogs:
    """Look up what a user names: a file or several, a Minari data set, a table.

    With `whole`, the arrays of a Minari data set are one column of lists instead of one column for each number.
    """
    if isinstance(where, ibis.Table):
        name = _table_name(where)
        return RawLogs(where, f"table {name}" if name else "the Ibis table", name)
    if is_table(where):
        origin = f"the {type(where).__name__}"
        table, shapes = _without_tensors(_arrow_table(where, origin))
        return RawLogs(_with_numbers(ibis.memtable(table)), origin, "", row=ROW, shapes=shapes)
    if isinstance(where, str) and where.startswith(MINARI):
        dataset = where.removeprefix(MINARI)
        if whole:
            scratch = Scratch()
            path = scratch.path / "rows.parquet"
            shape = write_minari(dataset, path)
            if shape is not None:
                rows = _engine(memory_limit).read_parquet(path, file_row_number=True)
                shapes = {"state": shape}
                return RawLogs(rows, where, dataset, row="file_row_number", shapes=shapes, files=scratch)
        table, state, metadata = minari_table(dataset)
        return replace(
            RawLogs(_with_numbers(ibis.memtable(table)), where, dataset, state, row=ROW), **_known([metadata])
        )
    paths = [Path(where)] if isinstance(where, (str, os.PathLike)) else [Path(part) for part in where]  # type: ignore[union-attr]
    _check_files(paths)
    names, several = [str(path) for path in paths], len(paths) > 1
    origin, stem = ", ".join(names), paths[0].name.split(".")[0]
    engine = _engine(memory_limit)
    with reading(origin):
        if all(name.lower().endswith(PARQUET) for name in names):
            known = _known([read_metadata(name, "logs") for name in names])
            if several:
                _check_alike([engine.read_parquet(name) for name in names], names)
            schema = pq.read_schema(names[0])
            clash = "file_row_number" in schema.names
            rows = engine.read_parquet(names, file_row_number=not clash, filename=several)
            row = None if clash else "file_row_number"
            file = "filename" if several else None
            return RawLogs(rows, origin, stem, row=row, file=file, shapes=_tensors(schema), **known)
        if all(name.lower().endswith(CSV) for name in names):
            options = {"header": True, "max_line_size": MAX_LINE_BYTES, "sample_size": -1}
            if several:
                _check_alike([engine.read_csv(name, **options) for name in names], names)
                return RawLogs(engine.read_csv(names, filename=True, **options), origin, stem, file="filename")
            return RawLogs(_with_numbers(engine.read_csv(names, **options)), origin, stem, row=ROW, header=True)
    raise FileError(f"{origin}: the parts of one log must be of one format.")


def _arrow_table(where: Any, origin: str) -> pa.Table:
    try:
        return pa.table(where)
    except pa.ArrowException as error:
        raise DataError(
            f"{origin} cannot be read: {error}. Arrays of several dimensions in a data frame must be flat, with shape= "
            "to tell how they are to be read, or nested lists."
        ) from error


def _tensors(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the columns of tensors, which are stored as flat lists."""
    tensors = {field.name: field.type for field in schema if isinstance(field.type, pa.FixedShapeTensorType)}
    for name, kind in tensors.items():
        if kind.permutation and list(kind.permutation) != sorted(kind.permutation):
            raise DataError(
                f"Column {name!r} holds tensors whose dimensions are permuted. Store them as they are read."
            )
    return {name: tuple(kind.shape) for name, kind in tensors.items()}


def _without_tensors(table: pa.Table) -> tuple[pa.Table, dict[str, tuple[int, ...]]]:
    """Return a table with flat lists in place of tensors, which no engine knows, and their shapes."""
    shapes = _tensors(table.schema)
    for name in shapes:
        chunks = [chunk.storage for chunk in table[name].chunks]
        column = pa.chunked_array(chunks, table.schema.field(name).type.storage_type)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table, shapes


def _with_numbers(rows: ibis.Table) -> ibis.Table:
    """Return rows with their numbers; the engine leaves them out of queries that do not ask for them."""
    return rows.mutate(**{ROW: ibis.row_number()})


def _check_alike(parts: Sequence[ibis.Table], names: Sequence[str]) -> None:
    """Refuse parts of one log whose columns differ: those that only some have would be lost."""
    first = dict(parts[0].schema())
    for part, name in zip(parts, names, strict=True):
        here = dict(part.schema())
        if list(here.items()) != list(first.items()):
            differs = sorted({str(column) for column, _ in first.items() ^ here.items()}) or ["their order"]
            raise DataError(
                f"{names[0]} and {name} are parts of one log, but differ in columns: {', '.join(differs)}. Give both "
                "the same names, types and order."
            )


def _check_files(paths: Sequence[Path]) -> None:
    if not paths:
        raise FileError("No file is given.")
    for path in paths:
        if path.is_dir():
            raise FileError(f"{path} is a folder. Name the files in it.")
        if not path.exists():
            raise FileError(f"{path} does not exist.")
        if not path.name.lower().endswith(TABLES):
            raise FileError(f"{path} must end in {', '.join(TABLES)}: the ending tells how to read it.")
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty.")


def _engine(memory_limit: str | None) -> Any:
    """Return an embedded DuckDB."""
    try:
        return ibis.duckdb.connect(**({"memory_limit": memory_limit} if memory_limit else {}))
    except Exception as error:
        raise ArgumentError(f"memory_limit is {memory_limit!r}; write it as '2GB' or '500MB'. ({error})") from error


def _table_name(table: ibis.Table) -> str:
    try:
        return str(table.get_name())
    except Exception:  # noqa: BLE001 - an expression without a name; backends differ in how they say so
        return ""


def _known(files: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return what the metadata of files of ours tell, nothing if one of them is not ours."""
    ours = [metadata for metadata in files if metadata is not None]
    if len(ours) < len(files):
        return {}
    spaces = [Space.from_json(json.dumps(metadata["space"])) for metadata in ours]
    result: dict[str, Any] = {"space": reduce(Space.merge, spaces)}
    sources = {str(metadata["source"]) for metadata in ours}
    if len(sources) == 1:
        result["source"] = sources.pop()
    if len(ours) == 1:
        result |= {"metadata": ours[0]["metadata"], "checksum": ours[0].get("checksum")}
    return result
