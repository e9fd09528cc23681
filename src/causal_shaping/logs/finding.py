"""Where the rows of a log are: in files, in a data set of Minari, or in a table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.space import Space, shortened
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.logs.engine import FILE, Engine, check_distinct
from causal_shaping.logs.minari import write_minari
from causal_shaping.logs.queries import is_ours, reading
from causal_shaping.logs.raw import RawLogs
from causal_shaping.storage import CSV, PARQUET, TABLES, InputFile, Scratch, read_metadata

MINARI = "minari:"

PLAIN_INTEGER = "0|-?[1-9][0-9]*"
"""A whole number as labels write it."""


class ArrowStream(Protocol):
    """A table in memory: a data frame of pandas or Polars, an Arrow table, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as Arrow data."""
        ...


Where: TypeAlias = (
    str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | ibis.Table | ArrowStream
)
"""What can be opened; see `find`."""


def is_table(where: Any) -> bool:
    """Return whether something is a table in memory, or one of an engine."""
    return isinstance(where, ibis.Table) or hasattr(where, "__arrow_c_stream__")


def engine_for(wheres: Iterable[Any], memory_limit: str | None = None) -> Engine:
    """Return one engine for all files among what is to be opened."""
    files = [file for where in wheres for file in _files(where)]
    return Engine(files, memory_limit)


def find(
    where: Where, engine: Engine, whole: bool = False, partitions: Sequence[str] = ()
) -> RawLogs:
    """Find the rows of a log.

    Args:
        where: a file, the files of one log, a data set of Minari as `minari:NAME`, or a table.
        engine: what `engine_for` returned for it.
        whole: an observation of a Minari data set is one list, instead of one column for each of
            its numbers.
        partitions: columns that the folders of files name, as in `day=3/logs.parquet`.
    """
    of_minari = isinstance(where, str) and where.startswith(MINARI)
    if partitions and (is_table(where) or of_minari):
        raise ArgumentError("partitions are columns that the folders of files name: give files.")
    if isinstance(where, ibis.Table):
        name = _table_name(where)
        if not name:
            return RawLogs(where, "the Ibis table")
        return RawLogs(where, f"table {name}", name)
    if is_table(where):
        return _table_in_memory(where, engine)
    if of_minari:
        return _minari(str(where), whole, engine.memory_limit)
    return _found_files(where, engine, partitions)


def _table_in_memory(where: Any, engine: Engine) -> RawLogs:
    origin = f"the {type(where).__name__}"
    try:
        table = pa.table(where)
    except pa.ArrowException as error:
        raise DataError(
            f"{origin} cannot be read: {error}. Arrays of several dimensions in a data frame must "
            "be flat, and shape says how to read them, or nested lists."
        ) from error
    # No engine knows tensors: they become the flat lists that they are stored as.
    shapes = _tensors(table.schema)
    for name in shapes:
        kind = table.schema.field(name).type.storage_type
        flat = pa.chunked_array([chunk.storage for chunk in table[name].chunks], kind)
        table = table.set_column(table.schema.get_field_index(name), name, flat)
    check_distinct(table.column_names, origin)
    return RawLogs(engine.table(table), origin, shapes=shapes)


def _minari(where: str, whole: bool, memory_limit: str | None) -> RawLogs:
    dataset, scratch = where.removeprefix(MINARI), Scratch()
    path = scratch.path / "rows.parquet"
    state, shapes = write_minari(dataset, path, whole)
    file = InputFile.at(path)
    table = Engine([file], memory_limit).parquet([file])
    # The file is removed with the engine that reads it.
    table.get_backend().causal_shaping_scratch = scratch
    return RawLogs(table, where, dataset, state, shapes=shapes)


def _found_files(where: Any, engine: Engine, partitions: Sequence[str]) -> RawLogs:
    files = _files(where)
    paths = [str(file.path) for file in files]
    origin, names = shortened(paths), [path.lower() for path in paths]
    known: dict[str, Any] = {}
    with reading(origin):
        if all(name.endswith(PARQUET) for name in names):
            known = _known([read_metadata(file, "logs") for file in files])
            schema = pq.read_schema(paths[0])
            check_distinct(schema.names, paths[0])
            known["shapes"] = _tensors(schema)
            rows = engine.parquet(files)
        elif all(name.endswith(CSV) for name in names):
            rows, odd = engine.csv(files)
            known |= {"header": len(files) == 1, "odd": odd}
        else:
            raise FileError(f"{origin}: the parts of one log must be of one format.")
    for column in partitions:
        rows = _with_partition(rows, files, column)
    stem = files[0].path.name.split(".")[0]
    return RawLogs(rows, origin, stem, **known)


def _files(where: Any) -> list[InputFile]:
    """Return the files of a log, none if it is something else."""
    if is_table(where) or (isinstance(where, str) and where.startswith(MINARI)):
        return []
    parts = where
    if isinstance(where, (str, os.PathLike)):
        parts = [where]
    if not isinstance(parts, Sequence) or not all(
        isinstance(part, (str, os.PathLike)) for part in parts
    ):
        raise ArgumentError(
            f"{where!r} cannot be opened. Give a file, the files of one log, 'minari:NAME', or a "
            "table."
        )
    if not parts:
        raise FileError("No file is given.")
    files = [InputFile.at(part) for part in parts]
    for file in files:
        if not file.path.name.lower().endswith(TABLES):
            raise FileError(
                f"{file.path} must end in {', '.join(TABLES)}: the ending tells how to read it."
            )
        if file.size == 0:
            raise DataError(f"{file.path} is empty.")
    return files


def _tensors(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the columns of tensors, which are stored as flat lists."""
    tensors = {
        field.name: field.type
        for field in schema
        if isinstance(field.type, pa.FixedShapeTensorType)
    }
    for name, kind in tensors.items():
        if kind.permutation and list(kind.permutation) != sorted(kind.permutation):
            raise DataError(
                f"Column {name!r} holds tensors whose dimensions are permuted. Store them in the "
                "order in which they are to be read."
            )
    return {name: tuple(kind.shape) for name, kind in tensors.items()}


def _with_partition(rows: ibis.Table, files: Sequence[InputFile], column: str) -> ibis.Table:
    """Return rows with a column that the folders of their files name."""
    if column in rows.columns:
        raise ArgumentError(
            f"{files[0].path} has a column {column!r}, which partitions names, too. Leave it out "
            "there."
        )
    value_of: dict[str, Any] = {}
    for file in files:
        folders = [part.partition("=") for part in file.path.parts[:-1]]
        values = [unquote(value) for name, equals, value in folders if equals and name == column]
        if len(values) != 1:
            raise ArgumentError(
                f"{file.path}: partitions names {column!r}, but no folder (or several) "
                f"{column}=... is."
            )
        value_of[os.path.abspath(file.path)] = values[0]
    if all(re.fullmatch(PLAIN_INTEGER, value) for value in value_of.values()):
        value_of = {name: int(value) for name, value in value_of.items()}
    if len(files) == 1:
        return rows.mutate(**{column: ibis.literal(*value_of.values())})
    return rows.mutate(**{column: rows[FILE].cases(*value_of.items())})


def _table_name(table: ibis.Table) -> str:
    try:
        if is_ours(table.get_backend()):
            return ""
        return str(table.get_name())
    except Exception:  # noqa: BLE001 - an expression without a name; backends raise many kinds
        return ""


def _known(files: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return what the metadata of files say, nothing if this package did not write all of them."""
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
