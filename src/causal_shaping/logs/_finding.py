"""Where the rows of a log lie, and what is known of them before they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.space import Space, shortened
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.io.minari import minari_table, write_minari
from causal_shaping.logs._engine import INTEGER, Engine, check_distinct, table_in_memory
from causal_shaping.logs.table import is_ours, reading
from causal_shaping.storage import CSV, PARQUET, TABLES, InputFile, Scratch, read_metadata

MINARI = "minari:"
ROW, FILE = "causal_shaping_row", "causal_shaping_file"


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
    written: frozenset[str] = frozenset()  # columns of whole numbers that are text, since they are not all plain
    header: bool = False  # whether a line of column names comes before the first row
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of columns that hold tensors as flat lists
    files: Any = None  # what keeps temporary files that hold the rows from being removed

    @property
    def places(self) -> dict[str, str]:
        """The columns that are not the user's, but locate a row: its number and its file."""
        places = {"row": self.row, "file": self.file}
        return {name: column for name, column in places.items() if column is not None}


def find(where: Where, memory_limit: str | None = None, whole: bool = False, partitions: Sequence[str] = ()) -> RawLogs:
    """Look up what a user names: a file or several, a Minari data set, a table.

    With `whole`, the arrays of a Minari data set are one column of lists instead of one column for each number.
    `partitions` are columns that the folders of files name, as in `day=3/logs.parquet`.
    """
    if partitions and (is_table(where) or (isinstance(where, str) and where.startswith(MINARI))):
        raise ArgumentError("partitions are columns that the folders of files name: give files.")
    if isinstance(where, ibis.Table):
        name = _table_name(where)
        return RawLogs(where, f"table {name}" if name else "the Ibis table", name)
    if is_table(where):
        origin = f"the {type(where).__name__}"
        table, shapes = _without_tensors(_arrow_table(where, origin))
        check_distinct(table.column_names, origin)
        return RawLogs(_with_numbers(table_in_memory(table)), origin, "", row=ROW, shapes=shapes)
    if isinstance(where, str) and where.startswith(MINARI):
        dataset = where.removeprefix(MINARI)
        if whole:
            scratch = Scratch()
            path = scratch.path / "rows.parquet"
            shape = write_minari(dataset, path)
            if shape is not None:
                rows = Engine([InputFile.at(path)], memory_limit).parquet("file_row_number")
                shapes = {"state": shape}
                return RawLogs(rows, where, dataset, row="file_row_number", shapes=shapes, files=scratch)
        table, state = minari_table(dataset)
        return RawLogs(_with_numbers(table_in_memory(table)), where, dataset, state, row=ROW)
    given = [where] if isinstance(where, (str, os.PathLike)) else where
    if not isinstance(given, Sequence) or not all(isinstance(part, (str, os.PathLike)) for part in given):
        raise ArgumentError(
            f"{where!r} cannot be opened. Give a file, the files of one log, 'minari:NAME', or a table."
        )
    paths = [Path(part) for part in given]
    files = _input_files(paths)
    names, several = [str(path) for path in paths], len(paths) > 1
    origin, stem = shortened(names), paths[0].name.split(".")[0]
    with reading(origin):
        engine = Engine(files, memory_limit)
        if all(name.lower().endswith(PARQUET) for name in names):
            known = _known([read_metadata(file, "logs") for file in files])
            schema = pq.read_schema(names[0])
            check_distinct(schema.names, names[0])
            row = None if "file_row_number" in schema.names else "file_row_number"
            rows, shapes, header = engine.parquet(row, FILE), _tensors(schema), False
        elif all(name.lower().endswith(CSV) for name in names):
            rows, known, shapes, header = engine.csv(FILE), {}, {}, not several
            row = None if several else ROW
            if row is not None:
                rows = _with_numbers(rows)
        else:
            raise FileError(f"{origin}: the parts of one log must be of one format.")
    rows = _with_partitions(rows, paths, partitions)
    if not several:
        rows = rows.drop(FILE)
    written = frozenset(engine.written)
    file = FILE if several else None
    return RawLogs(rows, origin, stem, row=row, file=file, shapes=shapes, header=header, written=written, **known)


def _arrow_table(where: Any, origin: str) -> pa.Table:
    try:
        return pa.table(where)
    except pa.ArrowException as error:
        raise DataError(
            f"{origin} cannot be read: {error}. Arrays of several dimensions in a data frame must be flat, and shape "
            "says how to read them, or nested lists."
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


def _with_partitions(rows: ibis.Table, paths: Sequence[Path], partitions: Sequence[str]) -> ibis.Table:
    """Return rows with the columns that the folders of their files name, as in `day=3/logs.parquet`."""
    for column in partitions:
        if column in rows.columns:
            raise ArgumentError(f"{paths[0]} has a column {column!r}, which partitions names, too. Leave it out there.")
        held = {}
        for path in paths:
            values = [part.partition("=")[2] for part in path.parts[:-1] if part.startswith(f"{column}=")]
            if len(values) != 1:
                raise ArgumentError(f"{path}: partitions names {column!r}, but no folder (or several) {column}=... is.")
            held[os.path.abspath(path)] = unquote(values[0])
        whole = all(re.fullmatch(INTEGER, value) for value in held.values())
        pairs = [(name, int(value) if whole else value) for name, value in held.items()]
        rows = rows.mutate(**{column: rows[FILE].cases(*pairs)})
    return rows


def _input_files(paths: Sequence[Path]) -> list[InputFile]:
    if not paths:
        raise FileError("No file is given.")
    files = [InputFile.at(path) for path in paths]
    for file in files:
        if not file.path.name.lower().endswith(TABLES):
            raise FileError(f"{file.path} must end in {', '.join(TABLES)}: the ending tells how to read it.")
        if file.size == 0:
            raise DataError(f"{file.path} is empty.")
    return files


def _table_name(table: ibis.Table) -> str:
    try:
        return "" if is_ours(table.get_backend()) else str(table.get_name())
    except Exception:  # noqa: BLE001 - an expression without a name; backends differ in how they say so
        return ""


def _known(files: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return what the metadata of files of ours tell, nothing if one of them is not ours."""
    ours = [metadata for metadata in files if metadata is not None]
    if len(ours) < len(files):
        return {}
    spaces = [Space.from_plain(metadata["space"]) for metadata in ours]
    result: dict[str, Any] = {"space": reduce(Space.merge, spaces)}
    sources = {str(metadata["source"]) for metadata in ours}
    if len(sources) == 1:
        result["source"] = sources.pop()
    if len(ours) == 1:
        result["metadata"] = ours[0]["metadata"]
    return result
