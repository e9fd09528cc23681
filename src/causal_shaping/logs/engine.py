"""The embedded engine that reads files and tables in memory: DuckDB, locked in with them.

It can open no other file, no address on a network, and no extension. Names of files are literal:
nothing in them is a pattern, and folders called `column=value` are folders. What does not fit into
memory goes to a temporary folder, not to the user's.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import duckdb
import ibis
import ibis.expr.operations as ops
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType

from causal_shaping.data.space import shortened
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.logs.csv_types import csv_file, literal_name, sql_name, sql_text
from causal_shaping.logs.queries import FROM_STATISTICS, reading, watch
from causal_shaping.storage import InputFile, Scratch

ROW, FILE = "causal_shaping_row", "causal_shaping_file"
"""Columns that are added to a table: the number of a row, from 0, and the file it is in."""

FILE_ROW = "file_row_number"
"""What DuckDB calls the number of a row in a Parquet file."""


class Engine:
    """A DuckDB that can read some files and what it is given, and nothing else."""

    def __init__(self, files: Sequence[InputFile] = (), memory_limit: str | None = None) -> None:
        self.memory_limit = memory_limit
        self._names = (f"logs{i}" for i in itertools.count())
        if not files:
            # Tables in memory share one DuckDB: to start one takes longer than most queries do.
            self._duckdb = ibis.duckdb.from_connection(_tables_in_memory(os.getpid()).cursor())
        else:
            with reading(shortened(str(file.path) for file in files)):
                self._duckdb = ibis.duckdb.from_connection(_started())
            self._lock(files)
        self._duckdb.db_identity = object()  # Ibis would take all DuckDBs in memory for one
        watch(self._duckdb, files)

    def _lock(self, files: Sequence[InputFile]) -> None:
        """Allow the files, and nothing else for good."""
        if self.memory_limit is not None:
            try:
                self._run(f"SET memory_limit = {sql_text(self.memory_limit)}")
            except Exception as error:
                raise ArgumentError(
                    f"memory_limit is {self.memory_limit!r}; write it as '2GB' or '500MB'. "
                    f"({error})"
                ) from error
        names = [os.path.abspath(file.path) for file in files]
        names += [literal_name(file) for file in files]
        self._run(f"SET allowed_paths = [{', '.join(map(sql_text, dict.fromkeys(names)))}]")
        self._run("SET enable_external_access = false")
        self._run("SET lock_configuration = true")

    def table(self, rows: pa.Table) -> ibis.Table:
        """Return an Arrow table as one of the engine, with the number of each row."""
        held = ibis.memtable(rows).op()  # Ibis knows which types have to be converted
        name = next(self._names)
        self._duckdb.con.register(name, held.data.to_pyarrow(held.schema))
        table = ops.DatabaseTable(name, schema=held.schema, source=self._duckdb).to_expr()
        return table.mutate(**{ROW: ibis.row_number()})

    def parquet(self, files: Sequence[InputFile]) -> ibis.Table:
        """Return the rows of Parquet files that are parts of one log."""
        options = f"hive_partitioning = false, union_by_name = false, filename = {sql_text(FILE)}"
        calls = [f"read_parquet({sql_text(literal_name(file))}, {options})" for file in files]
        described = [self._run(f"DESCRIBE SELECT * FROM {call}") for call in calls]
        types = [{name: kind for name, kind, *_ in rows} for rows in described]
        _check_alike(files, types)
        names = ", ".join(sql_text(literal_name(file)) for file in files)
        if FILE_ROW in types[0]:  # a column of the user's
            query = f"SELECT * FROM read_parquet([{names}], {options})"
        else:
            numbered = f"read_parquet([{names}], {options}, {FILE_ROW} = true)"
            query = f"SELECT *, {FILE_ROW} AS {ROW} FROM {numbered}"
            types[0][ROW] = "BIGINT"
        return self._view(types[0], query, files)

    def csv(self, files: Sequence[InputFile]) -> tuple[ibis.Table, frozenset[str]]:
        """Return the rows of CSV files that are parts of one log, and the columns `CsvFile.odd`."""
        parts = [csv_file(self._run, file) for file in files]
        for part, file in zip(parts, files, strict=True):
            check_distinct(part.header, str(file.path))
        _check_alike(files, [part.types for part in parts])
        odd = frozenset[str]().union(*(part.odd for part in parts))
        types = dict(parts[0].types)
        if len(files) == 1:
            types[ROW] = "BIGINT"
            query = f"SELECT *, row_number() OVER () - 1 AS {ROW} FROM ({parts[0].query})"
            return self._view(types, query, files), odd
        named = [
            f"SELECT *, {sql_text(os.path.abspath(file.path))} AS {FILE} FROM ({part.query})"
            for part, file in zip(parts, files, strict=True)
        ]
        types[FILE] = "VARCHAR"
        return self._view(types, " UNION ALL ".join(named), files), odd

    def _view(self, types: Mapping[str, str], query: str, files: Sequence[InputFile]) -> ibis.Table:
        """Return a query as a table.

        Columns whose type Ibis does not know, such as shapes on maps, are left out, and so is the
        name of the file if there is only one.
        """
        known = {name: _type(kind) for name, kind in types.items() if _type(kind) is not None}
        if len(files) == 1:
            known.pop(FILE, None)
        if not known.keys() - {ROW, FILE}:
            raise FileError("there is no column of a type that can be read")
        name = next(self._names)
        columns = ", ".join(map(sql_name, known))
        self._run(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM ({query})")
        return ops.DatabaseTable(name, schema=ibis.schema(known), source=self._duckdb).to_expr()

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._duckdb.raw_sql(statement).fetchall()  # type: ignore[no-any-return]


def check_distinct(names: Sequence[str], origin: str) -> None:
    """Refuse a table in which two columns have one name."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(
            f"{origin} has more than one column {shortened(map(repr, repeated))}. "
            "Give each its own name."
        )


def _check_alike(files: Sequence[InputFile], types: Sequence[Mapping[str, str]]) -> None:
    """Refuse parts of one log whose columns differ: what only some parts have would be lost."""
    first = types[0]
    for file, here in zip(files, types, strict=True):
        if list(here.items()) != list(first.items()):
            different = sorted({column for column, _ in first.items() ^ here.items()})
            raise DataError(
                f"{files[0].path} and {file.path} are parts of one log, but differ in columns: "
                f"{shortened(different or ['their order'])}. "
                "Give both the same names, types and order."
            )


@lru_cache(maxsize=1024)
def _type(kind: str) -> Any:
    """Return a type of DuckDB as one of Ibis, None if Ibis does not know it."""
    try:
        return DuckDBType.from_string(kind)
    except Exception:  # noqa: BLE001 - sqlglot and Ibis raise many kinds for an unknown type
        return None


def _started() -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB, without anything that it would load by itself."""
    return duckdb.connect(
        config={
            "temp_directory": _spill_folder(),
            "python_enable_replacements": False,  # variables of the program are no tables
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "disabled_optimizers": FROM_STATISTICS,
        }
    )


@cache
def _tables_in_memory(process: int) -> duckdb.DuckDBPyConnection:
    """Return the DuckDB of tables in memory, one for each process: a fork has no threads of it."""
    shared = _started()
    shared.execute("SET enable_external_access = false")
    return shared


_scratch = cache(Scratch)  # one folder for the spill folders of all engines, which can be many


def _spill_folder() -> str:
    """Return a new folder for what does not fit into the memory of an engine.

    It is the empty text, with which nothing is spilled, if no temporary folder can be written to.
    """
    try:
        return tempfile.mkdtemp(dir=_scratch().path)
    except OSError:
        return ""
